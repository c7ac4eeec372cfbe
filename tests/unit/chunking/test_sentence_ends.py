"""Where sentences end in the twelve languages of XQuAD: signs, abbreviations, and Thai, which has neither."""

from __future__ import annotations

import pytest

from recollect.chunking.sentences import sentence_spans

SENTENCES = {
    "ar": [
        "هل تعرف ذلك؟ نعم! ذهب د. أحمد إلى القاهرة في عام ١٩٥٢. ثم عاد.",
        ["هل تعرف ذلك؟", "نعم!", "ذهب د. أحمد إلى القاهرة في عام ١٩٥٢.", "ثم عاد."],
    ],
    "de": [
        "Dr. Müller kam am 3. Mai 2020. Er wohnt z. B. in Berlin. Wo? Hier.",
        ["Dr. Müller kam am 3. Mai 2020.", "Er wohnt z. B. in Berlin.", "Wo?", "Hier."],
    ],
    "el": [
        "Πού βρίσκεται η Αθήνα; Στην Ελλάδα. Ο κ. Παπαδόπουλος ζει π.χ. εκεί. Ναι!",
        ["Πού βρίσκεται η Αθήνα;", "Στην Ελλάδα.", "Ο κ. Παπαδόπουλος ζει π.χ. εκεί.", "Ναι!"],
    ],
    "es": [
        "El Sr. García llegó. ¿Dónde está? ¡Aquí! Vive en EE. UU. desde 1990. La pág. 5 es del art. 3.",
        ["El Sr. García llegó.", "¿Dónde está?", "¡Aquí!", "Vive en EE. UU. desde 1990.", "La pág. 5 es del art. 3."],
    ],
    "hi": [
        "भारत एक देश है। डॉ. सिंह 1950 में आए। क्या आप जानते हैं? कीमत रु. 500 है॥ ठीक है।",
        ["भारत एक देश है।", "डॉ. सिंह 1950 में आए।", "क्या आप जानते हैं?", "कीमत रु. 500 है॥", "ठीक है।"],
    ],
    "ro": [
        "Dl. Popescu a plecat. Str. Mihai nr. 5 e aici. Art. 5 alin. 2 se aplică. De ce? Nu știu.",
        ["Dl. Popescu a plecat.", "Str. Mihai nr. 5 e aici.", "Art. 5 alin. 2 se aplică.", "De ce?", "Nu știu."],
    ],
    "ru": [
        "Население 5 млн. человек. А. С. Пушкин жил на ул. Арбат, д. 5. Что это? Он дал им. Потом ушёл.",
        ["Население 5 млн. человек.", "А. С. Пушкин жил на ул. Арбат, д. 5.", "Что это?", "Он дал им.", "Потом ушёл."],
    ],
    "th": [
        "พนักงานมีสิทธิลาพักร้อนปีละ 15 วัน "
        "ทั้งนี้พนักงานต้องแจ้งหัวหน้างานล่วงหน้า และรอคำตอบ "
        "นาย ก. สมชาย ทำงานตั้งแต่ พ.ศ. 2540 โดยไม่หยุด เขาเกษียณแล้วและอาศัยอยู่ที่เชียงใหม่",
        [
            "พนักงานมีสิทธิลาพักร้อนปีละ 15 วัน",
            "ทั้งนี้พนักงานต้องแจ้งหัวหน้างานล่วงหน้า และรอคำตอบ",
            "นาย ก. สมชาย ทำงานตั้งแต่ พ.ศ. 2540 โดยไม่หยุด",
            "เขาเกษียณแล้วและอาศัยอยู่ที่เชียงใหม่",
        ],
    ],
    "tr": [
        "Prof. Dr. Ayşe Hanım geldi. 19. yüzyılda yaşadı. II. Mehmed vb. kişiler. M.Ö. 500 yılında. Nerede? Evde.",
        [
            "Prof. Dr. Ayşe Hanım geldi.",
            "19. yüzyılda yaşadı.",
            "II. Mehmed vb. kişiler.",
            "M.Ö. 500 yılında.",
            "Nerede?",
            "Evde.",
        ],
    ],
    "ur": ["یہ اردو ہے۔ کیا آپ جانتے ہیں؟ ہاں۔", ["یہ اردو ہے۔", "کیا آپ جانتے ہیں؟", "ہاں۔"]],
    "vi": [
        "TP. Hồ Chí Minh là thành phố lớn. PGS. TS. Nguyễn Văn A đến vào 3.5.2020. Ông ở đâu? Ở Q. 1.",
        ["TP. Hồ Chí Minh là thành phố lớn.", "PGS. TS. Nguyễn Văn A đến vào 3.5.2020.", "Ông ở đâu?", "Ở Q. 1."],
    ],
    "zh": ["北京是首都。你知道吗？是的！价格为3.5元。", ["北京是首都。", "你知道吗？", "是的！", "价格为3.5元。"]],
}


@pytest.mark.parametrize(("language", "text", "sentences"), [(code, *rest) for code, rest in SENTENCES.items()])
def test_sentences_end_where_the_language_ends_them(language: str, text: str, sentences: list[str]):
    assert [text[start:end] for start, end in sentence_spans(text, language)] == sentences


# Boundaries are marked by a stroke.
THAI = [
    "สำนักงานเปิดเวลา 8.30 น. | ปิดเวลา 17.00 น. | วันเสาร์หยุดทั้งวัน",
    "ฝนตกหนักมาก | น้ำท่วมถนน | รถติดทั้งเมือง",
    "แมวตัวนี้ชื่อส้ม | มันชอบนอน | มันกินปลาทุกวัน",
    "เขาเกิดที่เชียงใหม่ | เขาเรียนจบจากจุฬาลงกรณ์มหาวิทยาลัย | ต่อมาทำงานเป็นแพทย์",
    "บริษัทก่อตั้งขึ้นในปี พ.ศ. 2540 | ปัจจุบันมีพนักงาน 350 คน | สำนักงานใหญ่อยู่ที่กรุงเทพฯ",
    "เครื่องพิมพ์อยู่ชั้น 3 | รหัสคือ 4012 | หากหมึกหมดให้โทรแจ้งฝ่ายไอที",
    "ค่าปรับวันละ 20 บาท | หนังสือยืมได้ครั้งละ 5 เล่ม | ต่ออายุได้หนึ่งครั้ง",
    "ผมชอบกินผลไม้ เช่น มะม่วง ทุเรียน ลำไย ลิ้นจี่ เงาะ มังคุด และส้มโอ | แม่ของผมไม่ชอบทุเรียน",
    "ประเทศไทยแบ่งออกเป็น 6 ภาค ได้แก่ ภาคเหนือ ภาคกลาง ภาคตะวันออกเฉียงเหนือ ภาคตะวันออก ภาคตะวันตก และภาคใต้",
    "สมาชิกประกอบด้วย กระทรวงการคลัง กระทรวงพาณิชย์ กระทรวงศึกษาธิการ กระทรวงสาธารณสุข และกระทรวงกลาโหม",
    "ดร.สมศักดิ์ วงศ์ไทย เป็นอธิการบดี | ท่านดำรงตำแหน่งตั้งแต่ปี 2560",
    "จริงหรือ? | ไม่จริง! | เขาพูดเอง",
]


@pytest.mark.parametrize("text", THAI)
def test_short_thai_sentences_stand_alone_and_lists_are_not_cut(text: str):
    sentences = text.split(" | ")
    joined = " ".join(sentences)
    assert [joined[start:end] for start, end in sentence_spans(joined, "th")] == sentences


@pytest.mark.parametrize("text", ["ก" + " " * 200_000 + "ก", "นาย " * 50_000, "กขค" * 70_000, "\n" * 200_000 + "ก"])
def test_long_lines_are_read_in_time_that_grows_with_them(text: str):
    spans = sentence_spans(text, "th")
    assert sum(not text[start:end].strip() for start, end in spans) == 0
    assert sum(len(text[start:end].replace(" ", "")) for start, end in spans) == len("".join(text.split()))


def test_a_thai_paragraph_is_cut_between_parts_that_say_something_and_nothing_is_lost():
    part = "สหราชอาณาจักรและฝรั่งเศสประกาศสงครามกับเยอรมนีในอีกสองวันต่อมา"
    text = " ".join([part] * 200) + "\n\nจบ"
    found = [text[start:end] for start, end in sentence_spans(text, "th")]
    assert found[-1] == "จบ"
    assert set(found[:-1]) == {part}
