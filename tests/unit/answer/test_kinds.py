from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.answer._kinds import KIND_LANGUAGES, Kind, attribute, expected_kind, forms_of, holds_kind, lacks_price
from recollect.answer._question import in_range, missing_names, names_in, tells_of_another_year, understand
from recollect.retrieval.analysis import Analyzer


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many seats does the room have?", Kind.NUMBER),
        ("How much does the Engineering bundle cost?", Kind.MONEY),
        ("How long are backups kept?", Kind.DURATION),
        ("When do the payment runs take place?", Kind.DATE),
        ("My laptop was stolen. Whom do I call?", Kind.PERSON),
        ("Where do people gather when the siren sounds?", Kind.PLACE),
        ("Can I fly business class?", Kind.YES_NO),
        ("What does RTO mean?", Kind.DEFINITION),
        ("What were the net sales of 2022?", Kind.MONEY),
        ("What was the company's effective income tax rate?", Kind.NUMBER),
        ("How do I solve ERR-4017?", Kind.OTHER),
        # English, with function words of its own in none of them.
        ("Doktor Kim 1980'lerde ne yapar?", Kind.OTHER),
        ("Mikor alapították a várost, és hány lakosa van?", Kind.OTHER),
        ("", Kind.OTHER),
    ],
)
def test_the_kind_of_answer_that_a_question_expects(question, kind):
    assert expected_kind(question) is kind


@pytest.mark.parametrize(
    ("question", "holds", "lacks"),
    [
        ("How much does it cost?", "It costs EUR 400.", "It is reported within 48 hours by the CFO."),
        ("How much does the Gold level cost?", "Gold is USD 4 a seat.", "Gold has 99.9 percent of the month."),
        ("How many parts has the RW-400?", "It has twelve parts.", "The RW-400 is a sensor of POL-040."),
        ("How heavy is the RW-400?", "The sensor weighs 2.4 kg.", "RW-400 with serial number RW4 and 8 digits"),
        ("How many employees are there?", "There were 9,200.", "The plan of November 1, 2016 is amended in 2019."),
        ("When was it founded?", "It was founded in 1998.", "It was founded by an engineer."),
        ("Who founded it?", "It was founded by an engineer and Anna Berg.", "it is a sensor with a cable"),
    ],
)
def test_a_text_holds_the_kind_or_not(question, holds, lacks):
    kind = expected_kind(question)
    assert holds_kind(kind, holds, question)
    assert not holds_kind(kind, lacks, question)


def test_a_price_is_money():
    question = "How much does the Gold level cost per month?"
    assert lacks_price(question, "Gold | 99.9 percent | 24 hours, every day")
    assert not lacks_price(question, "Gold | EUR 40")
    assert not lacks_price(question, "Prices are in Appendix B.")
    assert not lacks_price("How many hours a month is Gold available?", "Gold | 99.9 percent")


def test_numbers_that_the_question_names_are_no_answer():
    question = "How many trips to group 3 took place?"
    assert not holds_kind(Kind.NUMBER, "Group 3 needs approval.", question)
    assert holds_kind(Kind.NUMBER, "Group 3: 14 trips.", question)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What does lunch in Porto cost?", {"porto"}),
        ("What is the opening angle of the RW-200's radar beam?", {"rw-200"}),
        ("What were 3M's net sales in 2022?", {"3m"}),
        ("How many people work for Johnson & Johnson in FY2022?", {"johnson"}),
        ("What is the default of max_sessions in v3.4.1?", {"max_sessions"}),
        ("Can I get a code by SMS on Monday?", set()),
        ("Wie hoch ist der Zuschuss zum Mittagessen in Porto?", set()),
        ("Who is President Biden?", {"biden"}),
        ("WHO DECIDES THIS HERE", set()),
        ("Referandumun geçerli olması için İskoç seçmeninin yüzde kaçı gerekiyordu?", set()),
    ],
)
def test_what_a_question_names(question, names):
    assert {word for name in names_in(question) for word in name} == names


def test_a_text_is_about_a_name_by_its_title_or_path_too():
    names = names_in("What does Hotel Weserblick in Bremen cost?")
    assert missing_names(names, "Weserblick (EUR 112)\ngeneral/office_guide_bremen.txt") == []
    assert missing_names(names, "Weserblick (EUR 112)\ngeneral/office_guide_lyon.txt") == [frozenset({"bremen"})]


def test_names_stand_run_together_in_the_name_of_a_file():
    names = names_in("What was the tax rate of Acme Health?")
    assert missing_names(names, "The rate was 26 %.", source="ACMEHEALTH_2022_10K.pdf") == []
    assert missing_names(names, "The rate was 26 %.", source="BETA_2021_10K.pdf") == [frozenset({"acme", "health"})]


@pytest.mark.parametrize(
    ("question", "core", "said"),
    [
        ("How are vaccines used now, according to the minister?", "How are vaccines used now?", True),
        ("What was decided on parking, as described in the minutes?", "What was decided on parking?", True),
        ("Which law did President Ruiz mention in her address?", "Which law did President Ruiz mention?", True),
        ("According to whom?", "According to whom?", False),
        ("How many days of leave do I get?", "How many days of leave do I get?", False),
        ("Was sagt sie in ihrer Rede?", "Was sagt sie in ihrer Rede?", False),
    ],
)
def test_who_said_it_and_where_is_not_searched_for_in_what_was_said(question, core, said):
    asked = understand(question, Analyzer("en"))
    assert (asked.core, asked.said) == (core, said)


def test_a_text_tells_of_another_year():
    asked = understand("What was the revenue of 2021?", Analyzer("en"))
    assert tells_of_another_year(asked, "Revenue was EUR 58 million in 2025.", "")
    assert not tells_of_another_year(asked, "Revenue was EUR 58 million in 2025.", "The years 2021 to 2025")
    assert not tells_of_another_year(asked, "Revenue was EUR 58 million.", "")
    assert not tells_of_another_year(understand("What was the revenue?", Analyzer("en")), "In 2025 it was 3.", "")


def test_what_a_question_wants_to_know():
    assert attribute("Who is the chief medical officer of Acme?") == "chief medical officer"
    assert attribute("What is the annual premium of the cyber insurance?") == "annual premium"
    assert attribute("How many seats does the room have?") == "seats"
    assert attribute("What is the name of the bridge?") is None
    assert attribute("How is my user name made up?") is None


def test_the_range_that_holds_an_amount():
    amount = understand("Who approves EUR 1,800?", Analyzer("en")).amount
    assert amount == 1800
    assert in_range(amount, "EUR 500.01 to EUR 2,500 | department head") == 1
    assert in_range(amount, "up to EUR 500 | line manager") == -1
    assert in_range(amount, "above EUR 2,500 | Head of People") == -1
    above = understand("Who approves more than EUR 2,500?", Analyzer("en")).amount
    assert in_range(above, "EUR 500.01 to EUR 2,500 | department head") == -1
    assert in_range(above, "above EUR 2,500 | Head of People") == 1
    assert in_range(amount, "The line manager") == in_range(None, "up to EUR 500") == 0


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_read_as_a_question(question, text):
    understand(question, Analyzer("en"))
    assert isinstance(holds_kind(expected_kind(question), text, question), bool)
    missing_names(names_in(question), text)


def test_no_question_is_quadratic():
    for question in (
        "what is the " + "a " * 20_000,
        "how many " + "x y " * 10_000,
        "the A" + " Ab" * 10_000,
        "What is said, as described " * 3_000,
        "What is said in the" + " new" * 20_000,
        "'" * 40_000,
        "What was said of the " * 5_000,
    ):
        understand(question, Analyzer("en"))


ASKED = {
    Kind.NUMBER: [
        "Wie viele Plätze hat der Raum?", "Combien de places y a-t-il ?", "¿Cuántas plazas tiene la sala?",
        "Quante persone lavorano nella sede?", "Quantas pessoas trabalham na empresa?",
        "Hoeveel plaatsen heeft de zaal?", "Odada kaç koltuk var?", "Сколько мест в зале?", "كم عدد المقاعد في القاعة؟",
        "会议室有多少个座位？", "会議室には何人入れますか？",
    ],
    Kind.MONEY: [
        "Wie viel kostet das Paket?", "Combien coûte le forfait ?", "¿Cuánto cuesta el paquete?",
        "Quanto costa il pacchetto?", "Quanto custa o pacote?", "Hoeveel kost het pakket?", "Paketin ücreti ne kadar?",
        "Сколько стоит пакет?", "كم تكلفة الباقة؟", "这个套餐多少钱？", "このプランはいくらですか？",
    ],
    Kind.DURATION: [
        "Wie lange werden Sicherungen aufbewahrt?", "Pendant combien de temps les copies sont-elles gardées ?",
        "¿Cuánto tiempo se guardan las copias?", "Per quanto tempo si conservano le copie?",
        "Durante quanto tempo se guardam as cópias?", "Hoe lang worden de kopieën bewaard?",
        "Yedekler ne kadar süre saklanır?", "Как долго хранятся копии?", "كم من الوقت تحفظ النسخ؟", "备份要保存多久？",
        "バックアップは何日間保存されますか？",
    ],
    Kind.DATE: [
        "Wann wird das Gehalt bezahlt?", "Quand le salaire est-il versé ?", "¿Cuándo se paga el salario?",
        "Quando viene pagato lo stipendio?", "Quando é que o salário é pago?", "Wanneer wordt het salaris betaald?",
        "Maaşlar ne zaman ödenir?", "Когда выплачивают зарплату?", "متى يدفع الراتب؟", "什么时候发工资？",
        "給料はいつ支払われますか？",
    ],
    Kind.PERSON: [
        "Wer genehmigt die Reise?", "Qui approuve le voyage ?", "¿Quién aprueba el viaje?", "Chi approva il viaggio?",
        "Quem aprova a viagem?", "Wie keurt de reis goed?", "Seyahati kim onaylar?", "Кто утверждает поездку?",
        "من الذي يوافق على السفر؟", "谁批准出差？", "出張は誰が承認しますか？",
    ],
}  # fmt: skip


LANGUAGES = ("de", "fr", "es", "it", "pt", "nl", "tr", "ru", "ar", "zh", "ja")


@pytest.mark.parametrize(
    ("kind", "language", "question"),
    [
        (kind, language, question)
        for kind, asked in ASKED.items()
        for language, question in zip(LANGUAGES, asked, strict=True)
    ],
)
def test_questions_in_other_languages_expect_what_english_ones_do(kind, language, question):
    assert expected_kind(question, language) is kind
    # Characters without a width come along with what was copied.
    assert expected_kind("\u200f" + question.replace(" ", " \u200b"), language) is kind


@pytest.mark.parametrize(
    ("language", "question", "holds", "lacks"),
    [
        ("de", "Wie viele Plätze hat der Raum?", "Er hat zweiundvierzig Plätze.", "Der Raum liegt am Ende des Flurs."),
        ("de", "Wie viele Teile hat RW-400?", "Es sind zwölf.", "RW-400 ist ein Sensor seit dem 3. Mai 2019."),
        ("de", "Was kostet das Paket?", "Es kostet 40 Euro.", "Es wird in 3 Tagen geliefert."),
        ("de", "Wann wird das Gehalt bezahlt?", "Am letzten Freitag des Monats.", "Die Buchhaltung bezahlt es."),
        ("fr", "Qui approuve le voyage ?", "Il est approuvé par Marie Curie.", "la demande est écrite sur papier"),
        ("fr", "Combien de places y a-t-il ?", "La salle a quarante places.", "La salle est près de la porte."),
        ("es", "¿Cuándo se paga?", "Se paga el lunes.", "Lo paga la empresa."),
        ("it", "Quanto costa?", "Costa 30 euro.", "Arriva in tre giorni."),
        ("pt", "Quanto tempo demora?", "Demora três semanas.", "Depende do pedido."),
        ("nl", "Hoeveel plaatsen?", "Er zijn veertig plaatsen.", "De zaal ligt rechts."),
        ("tr", "Odada kaç koltuk var?", "Odada kırk koltuk var.", "Oda koridorun sonundadır."),
        ("ru", "Сколько мест в зале?", "В зале сорок мест.", "Зал находится справа."),
        ("ru", "Кто утверждает поездку?", "Поездку утверждает Анна.", "заявка пишется на бумаге"),
        ("ar", "كم عدد المقاعد؟", "في القاعة أربعون مقعدا.", "القاعة في الطابق الأرضي."),
        ("ar", "متى يدفع؟", "يدفع في نهاية شهر مايو.", "تدفعه المحاسبة."),
        ("zh", "有多少个座位？", "会议室有四十个座位。", "会议室靠近门口。"),
        ("zh", "什么时候？", "2015年2月7日举行。", "由公司举行。"),
        ("zh", "多少钱？", "套餐40美元。", "3位顾客购买了套餐。"),
        ("ja", "何人入れますか？", "最大12人です。", "ドアの近くです。"),
    ],
)
def test_a_text_in_another_language_holds_the_kind_or_not(language, question, holds, lacks):
    kind = expected_kind(question, language)
    assert kind is not Kind.OTHER
    assert holds_kind(kind, holds, question, language=language)
    assert not holds_kind(kind, lacks, question, language=language)


def test_the_language_of_the_texts_decides_where_a_question_is_in_two():
    assert expected_kind("Wie oft reist Doctor Who alleine?", "de") is Kind.DURATION
    assert expected_kind("How many seats does the room have?", "de") is Kind.NUMBER
    assert expected_kind("Wie viele seats have the Räume?", "de") is Kind.NUMBER


def test_every_language_has_its_patterns_and_no_other_has_any():
    for language in KIND_LANGUAGES:
        forms = forms_of(language)
        assert forms is not None
        assert {kind for kind, _ in forms.asks} >= {*ASKED, Kind.PLACE, Kind.YES_NO}
    assert forms_of("en") is None
    assert forms_of("../de") is None


@given(st.text(max_size=80), st.text(max_size=200), st.sampled_from([*KIND_LANGUAGES, "en", "xx"]))
def test_any_text_is_judged(question, text, language):
    assert isinstance(holds_kind(expected_kind(question, language), text, question, language=language), bool)


FURTHER_QUESTIONS = [
    (Kind.NUMBER, "el", "Πόσες θέσεις έχει η αίθουσα;"),
    (Kind.NUMBER, "ro", "Câte locuri are sala?"),
    (Kind.NUMBER, "vi", "Phòng họp có bao nhiêu chỗ ngồi?"),
    (Kind.NUMBER, "hi", "हॉल में कितनी सीटें हैं?"),
    (Kind.NUMBER, "th", "ห้องประชุมมีกี่ที่นั่ง"),
    (Kind.MONEY, "el", "Πόσο κοστίζει το πακέτο;"),
    (Kind.MONEY, "ro", "Cât costă pachetul?"),
    (Kind.MONEY, "vi", "Gói này giá bao nhiêu?"),
    (Kind.MONEY, "hi", "पैकेज की कीमत क्या है?"),
    (Kind.MONEY, "th", "แพ็กเกจนี้ราคาเท่าไร"),
    (Kind.DURATION, "el", "Πόσο καιρό φυλάσσονται τα αντίγραφα;"),
    (Kind.DURATION, "ro", "Cât timp se păstrează copiile?"),
    (Kind.DURATION, "vi", "Bản sao được giữ bao lâu?"),
    (Kind.DURATION, "hi", "प्रतियाँ कितने समय तक रखी जाती हैं?"),
    (Kind.DURATION, "th", "เก็บสำเนาไว้นานเท่าไร"),
    (Kind.DATE, "el", "Πότε ιδρύθηκε η εταιρεία;"),
    (Kind.DATE, "ro", "Când a fost fondată compania?"),
    (Kind.DATE, "vi", "Công ty được thành lập khi nào?"),
    (Kind.DATE, "hi", "कंपनी की स्थापना कब हुई?"),
    (Kind.DATE, "th", "บริษัทก่อตั้งเมื่อไร"),
    (Kind.PERSON, "el", "Ποιος εγκρίνει το ταξίδι;"),
    (Kind.PERSON, "ro", "Cine aprobă călătoria?"),
    (Kind.PERSON, "vi", "Ai duyệt chuyến đi?"),
    (Kind.PERSON, "hi", "यात्रा को कौन मंज़ूरी देता है?"),
    (Kind.PERSON, "th", "ใครอนุมัติการเดินทาง"),
    (Kind.PLACE, "el", "Πού βρίσκεται η έδρα;"),
    (Kind.PLACE, "ro", "Unde se află sediul?"),
    (Kind.PLACE, "vi", "Trụ sở ở đâu?"),
    (Kind.PLACE, "hi", "मुख्यालय कहाँ है?"),
    (Kind.PLACE, "th", "สำนักงานใหญ่อยู่ที่ไหน"),
]

FURTHER_TEXTS = [
    ("el", "Πόσες θέσεις έχει η αίθουσα;", "Η αίθουσα έχει σαράντα θέσεις.", "Η αίθουσα είναι στο ισόγειο."),
    ("ro", "Câte locuri are sala?", "Sala are patruzeci de locuri.", "Sala este la parter."),
    ("vi", "Phòng họp có bao nhiêu chỗ ngồi?", "Phòng họp có bốn mươi chỗ.", "Phòng họp ở cạnh cửa."),
    ("hi", "हॉल में कितनी सीटें हैं?", "हॉल में चालीस सीटें हैं।", "हॉल दाईं ओर है।"),
    ("th", "ห้องประชุมมีกี่ที่นั่ง", "ห้องประชุมมีสี่สิบที่นั่ง", "ห้องประชุมอยู่ใกล้ประตู"),
    ("el", "Πόσο κοστίζει το πακέτο;", "Το πακέτο κοστίζει 40 ευρώ.", "Το πακέτο έχει 40 μέρη."),
    ("ro", "Cât costă pachetul?", "Pachetul costă 40 de lei.", "Pachetul are 40 de piese."),
    ("vi", "Gói này giá bao nhiêu?", "Gói này giá 40 đô la.", "Gói này có 40 phần."),
    ("hi", "पैकेज की कीमत क्या है?", "पैकेज की कीमत ४० रुपये है।", "पैकेज में ४० भाग हैं।"),
    ("th", "แพ็กเกจนี้ราคาเท่าไร", "แพ็กเกจนี้ราคา ๔๐ บาท", "แพ็กเกจนี้มี ๔๐ ชิ้น"),
    ("el", "Πόσο καιρό φυλάσσονται τα αντίγραφα;", "Φυλάσσονται τρεις μήνες.", "Φυλάσσονται στο υπόγειο."),
    ("ro", "Cât timp se păstrează copiile?", "Se păstrează trei luni.", "Se păstrează la subsol."),
    ("vi", "Bản sao được giữ bao lâu?", "Bản sao được giữ ba tháng.", "Bản sao được giữ trong tủ."),
    ("hi", "प्रतियाँ कितने समय तक रखी जाती हैं?", "प्रतियाँ तीन महीने रखी जाती हैं।", "प्रतियाँ अलमारी में रखी जाती हैं।"),
    ("th", "เก็บสำเนาไว้นานเท่าไร", "เก็บสำเนาไว้สามเดือน", "เก็บสำเนาไว้ในตู้"),
    ("el", "Πότε ιδρύθηκε η εταιρεία;", "Ιδρύθηκε τον Μάιο του 1998.", "Ιδρύθηκε από μηχανικό."),
    ("ro", "Când a fost fondată compania?", "A fost fondată în 1998.", "A fost fondată de un inginer."),
    ("vi", "Công ty được thành lập khi nào?", "Công ty được thành lập năm 1998.", "Công ty do kỹ sư lập."),
    ("hi", "कंपनी की स्थापना कब हुई?", "कंपनी की स्थापना १९९८ में हुई।", "कंपनी की स्थापना अभियंता ने की।"),
    ("th", "บริษัทก่อตั้งเมื่อไร", "บริษัทก่อตั้งใน พ.ศ. ๒๕๔๑", "บริษัทก่อตั้งโดยวิศวกร"),
    ("el", "Ποιος εγκρίνει το ταξίδι;", "Το ταξίδι εγκρίνει η Άννα.", "η αίτηση γράφεται σε χαρτί"),
    ("ro", "Cine aprobă călătoria?", "Călătoria o aprobă Ana.", "cererea se scrie pe hârtie"),
]


@pytest.mark.parametrize(("kind", "language", "question"), FURTHER_QUESTIONS)
def test_questions_of_the_languages_of_xquad_expect_what_english_ones_do(kind, language, question):
    assert expected_kind(question) is expected_kind(question, language) is kind


@pytest.mark.parametrize(("language", "question", "holds", "lacks"), FURTHER_TEXTS)
def test_texts_in_the_languages_of_xquad_hold_the_kind_or_not_in_digits_of_their_own_too(
    language, question, holds, lacks
):
    kind = expected_kind(question, language)
    assert holds_kind(kind, holds, question, language=language)
    assert not holds_kind(kind, lacks, question, language=language)


@pytest.mark.parametrize(
    ("language", "question", "kind"),
    [
        ("el", "ποτε ιδρυθηκε ο δημος", Kind.DATE),
        ("es", "cuantos kilometros tiene el rio Duero", Kind.NUMBER),
        ("es", "en que ano se fundo la empresa", Kind.DATE),
        ("fr", "quand ouvre le musee", Kind.DATE),
        ("ro", "cati kilometri are raul Mures", Kind.NUMBER),
        ("tr", "sirketi kim kurdu", Kind.PERSON),
        ("vi", "song Ma dai bao nhieu kilomet", Kind.NUMBER),
        ("es", "¿Qué pasa cuando llueve?", Kind.OTHER),
    ],
)
def test_what_is_asked_for_is_known_typed_without_marks(language: str, question: str, kind: Kind):
    assert expected_kind(question, language) is kind
