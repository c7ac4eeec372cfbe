"""Which language a text is written in: by its script, its most frequent words and the letters that few languages have.

Every text gets a language, because every text is analysed in one: where nothing speaks for another, it is the expected
one, and of the languages of a script of which nothing is known, the one that most of its texts are in. Pure and
deterministic: what was indexed can be counted again, on another machine and years later, to the same terms.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files

from recollect.languages.stopwords import stopwords

#: The language of a collection whose documents are each analysed in their own.
AUTO = "auto"

#: What a text is taken for that says nothing of its language.
DEFAULT_LANGUAGE = "en"

# So much is read of a text: of a long one, the beginning, and as much from its middle.
_SAMPLE_CHARACTERS = 3_000

# Letters of a script, as a share of the sample's, that make it the script's: names and terms stand in other ones.
_MOSTLY = 0.4

# What a letter says, in letters of an alphabet: "NASUWT是什么？" is Chinese.
_SAYS = {"han": 2.5, "hangul": 2.0, "kana": 2.0}

# Fewer letters in other scripts than this share of them are none of the text's own, whatever a letter says.
_SELDOM = 0.2

# A part of a document is in another language than the whole where so many points, and so many times those of the
# whole's language, speak for it.
_PART_POINTS = 3.0
_PART_RATIO = 3.0

# What a word counts that occurs once, twice and so on: the square root of that, and no more from the fourth time on.
_TIMES = (0.0, 1.0, math.sqrt(2), math.sqrt(3), 2.0)

# Words that are kept with what they say.
_MOST_KNOWN_WORDS, _LONGEST_KNOWN_WORD = 100_000, 40

# So many more points than the expected language's decide for another one.
_LEAD = 0.5

# Two languages that this much or less divides are as likely as each other.
_SAME = 0.1
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019\u0900-\u097f][^\W\d_]*)*")
_ASCII_WORDS = {
    code: character.lower() if (character := chr(code)).isalpha() or character == "'" else " " for code in range(128)
}
_LETTER = re.compile(r"[^\W\d_]")
_OTHER_THAN_LATIN = re.compile("[\u0370-\u1dff\u1f00-\u1fff\u3041-\uffdc\U00010000-\U0003ffff]")

# What a word counts for a language that alone has one of its letters.
_LETTER_POINTS = 0.5
_VIETNAMESE = re.compile("[\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9]")
_SCRIPTS = {
    "arabic": "\u0620-\u064a\u066e-\u06d3\u06fa-\u06fc",
    "armenian": "\u0531-\u0587",
    "bengali": "\u0985-\u09b9",
    "burmese": "\u1000-\u102a",
    "cyrillic": "\u0400-\u052f",
    "devanagari": "\u0904-\u0939\u0958-\u0961",
    "ethiopic": "\u1200-\u135a",
    "georgian": "\u10a0-\u10ff",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "gujarati": "\u0a85-\u0ab9",
    "gurmukhi": "\u0a05-\u0a39",
    "han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "hangul": "\u1100-\u11ff\uac00-\ud7af",
    "hebrew": "\u05d0-\u05ea",
    "kana": "\u3041-\u30ff\u31f0-\u31ff",
    "kannada": "\u0c85-\u0cb9",
    "khmer": "\u1780-\u17b3",
    "lao": "\u0e81-\u0eb0",
    "malayalam": "\u0d05-\u0d39",
    "sinhala": "\u0d85-\u0dc6",
    "tamil": "\u0b85-\u0bb9",
    "telugu": "\u0c05-\u0c39",
    "thai": "\u0e01-\u0e30",
}
_ONE_LANGUAGE = {
    "armenian": "hy", "bengali": "bn", "burmese": "my", "ethiopic": "am", "georgian": "ka", "greek": "el",
    "gujarati": "gu", "gurmukhi": "pa", "hangul": "ko", "hebrew": "he", "kana": "ja", "kannada": "kn", "khmer": "km",
    "lao": "lo", "malayalam": "ml", "sinhala": "si", "tamil": "ta", "telugu": "te", "thai": "th", "han": "zh",
}  # fmt: skip
_SHARED = {
    "latin": (
        "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "ca", "cs", "et", "eu", "ga", "hr", "hu",
        "id", "lt", "lv", "pl", "ro", "sk", "sl", "tr", "vi",
    ),
    "cyrillic": ("ru", "uk", "bg", "sr"),
    "devanagari": ("hi", "mr", "ne"),
    "arabic": ("ar", "fa", "ur"),
}  # fmt: skip
_SCRIPT_OF_LANGUAGE = {code: script for script, codes in _SHARED.items() for code in codes} | {
    code: script for script, code in _ONE_LANGUAGE.items()
}

# Letters of Persian and Urdu that Arabic lacks, and those that Persian lacks too.
_PERSIAN = re.compile("[\u067e\u0686\u0698\u06a9\u06af\u06cc]")
_URDU = re.compile("[\u0679\u0688\u0691\u06ba\u06be\u06c1\u06d2]")
_ARABIC = re.compile("[\u0629\u0643\u064a\u0649]")


def language_of_text(text: str, *, expected: str | None = None) -> str:
    """The language of a text.

    Args:
        text: Of any length; of a long one, a part is read.
        expected: ISO 639-1 code, of what the text stands in: it is its language unless something speaks for another
            one; None: nothing is known.

    Returns:
        An ISO 639-1 code, whatever the text: ``en`` where it holds no letters and nothing is expected.
    """
    return _found(_sample(text), expected)


def certain_language(text: str) -> str | None:
    """The language of a text for which more speaks than for any other; None: nothing does, or as much for another one.

    Args:
        text: A question or a sentence.
    """
    sample = _sample(text)
    script, share = _script(sample)
    if not share or script not in _SHARED or script == "arabic":
        return _of_script(script, sample, None) if share else None
    ranked = sorted(_points(sample, script).items(), key=lambda item: item[1], reverse=True)[:2]
    alike = [code for code, points in ranked if points > ranked[0][1] - _SAME]
    if len(alike) == 1:
        return alike[0]
    # German alone writes nouns with a capital within a sentence.
    return "de" if "de" in alike and re.search(r"[^.!?…:]\s[A-Z]\w+[a-z]", sample) else None


def shares_script(language: str, other: str = DEFAULT_LANGUAGE) -> bool:
    """Whether two languages are written in one script; of a language that is not known, that it is Latin is assumed."""
    return _SCRIPT_OF_LANGUAGE.get(language, "latin") == _SCRIPT_OF_LANGUAGE.get(other, "latin")


def language_of_part(text: str, whole: str) -> str:
    """The language of a part of a document: the whole's, unless the part is clearly in another one.

    Args:
        text: Of the part.
        whole: ISO 639-1 code, of the document.
    """
    sample = _sample(text)
    script, share = _script(sample)
    if script != _SCRIPT_OF_LANGUAGE.get(whole, "latin"):
        # Names, formulas and codes in Latin letters stand in every language.
        mostly = 1 - _MOSTLY if script == "latin" else _MOSTLY
        return _found(sample, None) if share > mostly and _clear(sample, script) else whole
    if script not in _SHARED or script == "arabic":
        return _of_script(script, sample, whole)
    points = _points(sample, script)
    best = max(points, key=lambda code: (points[code], code), default=whole)
    return best if points[best] >= max(_PART_POINTS, _PART_RATIO * points[whole]) else whole


def _clear(sample: str, script: str) -> bool:
    if script not in _SHARED or script == "arabic":
        return True
    return max(_points(sample, script).values(), default=0.0) >= _PART_POINTS


@lru_cache(maxsize=4_096)
def _found(sample: str, expected: str | None) -> str:
    script, share = _script(sample)
    if not share:
        return expected or DEFAULT_LANGUAGE
    return _of_script(script, sample, expected)


def _sample(text: str) -> str:
    if len(text) > 2 * _SAMPLE_CHARACTERS:
        middle = len(text) // 2
        text = f"{text[:_SAMPLE_CHARACTERS]}\n{text[middle : middle + _SAMPLE_CHARACTERS]}"
    # Words would end at marks that stand apart from their letters.
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def _script(sample: str) -> tuple[str, float]:
    """The script that a text is in, and the share of its letters."""
    if sample.isascii():
        return "latin", float(any(map(str.isalpha, sample)))
    letters = len(_LETTER.findall(sample))
    if not letters:
        return "latin", 0.0
    if len(_OTHER_THAN_LATIN.findall(sample)) <= _SELDOM * letters:
        return "latin", 1.0
    counts: dict[str, float] = defaultdict(float)
    for match in _script_pattern().finditer(sample):
        counts[match.lastgroup or ""] += len(match.group())
    # Japanese is written in both: where every tenth such letter is a syllable, all of them are Japanese.
    if 10 * counts["kana"] >= counts["han"]:
        counts["kana"] += counts.pop("han", 0.0)
    others = letters - sum(counts.values())
    for kind, says in _SAYS.items():
        counts[kind] *= says
    script = max(counts, key=lambda kind: (counts[kind], kind))
    share = min(counts[script] / max(others + sum(counts.values()), 1.0), 1.0)
    return (script, share) if share > _MOSTLY else ("latin", 1.0 - share)


@cache
def _script_pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{name}>[{letters}]+)" for name, letters in _SCRIPTS.items()))


def _of_script(script: str, sample: str, expected: str | None) -> str:
    if script in _ONE_LANGUAGE:
        return _ONE_LANGUAGE[script]
    languages = _SHARED[script]
    known = expected if expected in languages else None
    if script == "arabic":
        return _of_arabic(sample)
    points = _points(sample, script)
    assumed = known or languages[0]
    best = max(points, key=lambda code: (points[code], code == assumed, code), default=assumed)
    return best if points[best] > points[assumed] + _LEAD else assumed


def _of_arabic(sample: str) -> str:
    urdu, persian, arabic = (len(letters.findall(sample)) for letters in (_URDU, _PERSIAN, _ARABIC))
    if urdu > max(1, (persian + arabic) // 10):
        return "ur"
    return "fa" if persian > arabic else "ar"


def _points(sample: str, script: str) -> dict[str, float]:
    """What speaks for each language of a script: words that few of them have count most."""
    counts = Counter(_words(sample))
    points: dict[str, float] = defaultdict(float)
    for says, occurrences in zip(map(_telling(script).__getitem__, counts), counts.values(), strict=True):
        if says:
            # A name that is written ten times is no ten words of its language: "Los Angeles".
            times = _TIMES[min(occurrences, 4)]
            for code, weight in says:
                points[code] += times * weight
    return points


def _words(sample: str) -> list[str]:
    if not sample.isascii():
        return _WORD.findall(sample.lower())
    # The same words, several times as fast.
    words = sample.translate(_ASCII_WORDS).split()
    return [bare for word in words if (bare := word.lstrip("'"))] if "'" in sample else words


class _Telling(dict[str, tuple[tuple[str, float], ...]]):
    """What a word says of its language, looked up without a step of Python for words that were met before."""

    def __init__(self, script: str) -> None:
        super().__init__()
        self._words, self._letters = _evidence(script)

    def __missing__(self, word: str) -> tuple[tuple[str, float], ...]:
        # "l'hôtel" tells by its article.
        says = (*self._words.get(word, ()), *self._words.get(_elided(word), ()))
        if not word.isascii():
            says += tuple(_of_letters(word, self._letters).items())
        if len(word) <= _LONGEST_KNOWN_WORD:
            if len(self) >= _MOST_KNOWN_WORDS:
                self.clear()
            self[word] = says
        return says


@cache
def _telling(script: str) -> _Telling:
    return _Telling(script)


def _elided(word: str) -> str:
    head, apostrophe, _ = word.replace("\u2019", "'").partition("'")
    return head + apostrophe if apostrophe else ""


def _of_letters(word: str, letters: dict[str, Sequence[tuple[str, float]]]) -> dict[str, float]:
    if _VIETNAMESE.search(word):
        return {"vi": 1.0}
    found: dict[str, float] = {}
    for letter in set(word):
        for code, weight in letters.get(letter, ()):
            found[code] = max(found.get(code, 0.0), weight)
    return found


@cache
def _evidence(script: str) -> tuple[dict[str, Sequence[tuple[str, float]]], dict[str, Sequence[tuple[str, float]]]]:
    """Which languages of a script have a word, and which a letter, each with what it counts for them."""
    languages = _SHARED[script]
    # Single Latin letters are initials, units and variables too.
    words = {
        code: {word for word in (*stopwords(code), *WORDS.get(code, "").split()) if not re.match("[a-z]$", word)}
        for code in languages
    }
    letters = {code: set(LETTERS.get(code, "")) for code in languages}
    return _shared_out(words, 1.0), _shared_out(letters, _LETTER_POINTS)


def _shared_out(held: dict[str, set[str]], points: float) -> dict[str, Sequence[tuple[str, float]]]:
    holders: dict[str, list[str]] = {}
    for code, items in held.items():
        for item in items:
            holders.setdefault(item, []).append(code)
    return {item: [(code, points / len(codes)) for code in codes] for item, codes in holders.items()}


# What languages are told apart by where they share a script: words and letters that are frequent in few. Data only.
#
# Languages with a list of function words (`recollect.languages.stopwords`) are known by that list, and by what their
# questions ask with, which stands here. These lists decide nothing but which language a text is in: no word is left
# out of an analysis because it stands here.

WORDS = {
    "de": """
        heißt heißen hieß hießen viele oft lautet lautete woran worauf woraus worin wofür womit wovon wodurch wozu
        wogegen wohin woher weshalb wieso wessen gibt gab wird kostet zahlt öffnet liegt liegen
    """,
    "es": """
        cuánto cuánta cuántos cuántas cuanto adónde quiénes llama llamaba tiene tienen todo toda todos todas cada otro
        otra otros otras años hace cuesta cuantos cuantas tengo dias
    """,
    "fr": "combien lesquels lesquelles appelle appelait coûte coûtent paie l' d' qu' j' n' s' c'",
    "it": "quanto quanta quanti quante chiama chiamava l' d' un' dell' nell' all' dall' sull' dov' cos' c'",
    "nl": "hoeveel waarom waarvoor waarmee heet heette wiens betaalt",
    "pt": """
        quanto quanta quantos quantas chama chamava custa todo toda todos todas cada outro outra outros outras ano anos
    """,
    "ru": "сколько какому какими каким какую зовут называется",
    "sv": "många hette heter",
    "ca": """
        el la els les un una uns unes i o de del dels al als amb per en a que com si no és són era eren va van ser
        està estan té tenen ha han havia més molt aquest aquesta aquests aquestes això seva seu seus seves tot tots
        l' d' n' s' també però quan on perquè entre sobre fins des sense hi ho li quin quina qui què quants
    """,
    "cs": """
        a v ve na se si je jsou byl byla bylo byli že z ze s do o od po pro při za ale nebo jako který která které kteří
        jeho její jejich tento tato toto to ten ta tom také však aby co kdo kdy kde jak jaký jaká jaké kolik proč být má
        mají i k ke než už jen více mezi
    """,
    "sk": """
        a v vo na sa si je sú bol bola bolo boli že z zo s so do o od po pre pri za ale alebo ako ktorý ktorá ktoré
        ktorí jeho jej ich tento táto toto to ten tá tom tiež však aby čo kto kedy kde aký aká aké koľko prečo byť má
        majú i k ku než už len viac medzi
    """,
    "et": """
        ja on ei oli mis kes et ka kui aga või oma nad ta selle seda mida kus millal kuidas miks mitu ning olid
        olnud pole siis juba kõik väga nende tema poolt koos
    """,
    "eu": """
        eta da ez bat dira zen ziren du dute zuen zuten hau hori bere ere baina edo egin izan dela zer nor noiz non nola
        zein zenbat artean gabe arte beste guztiak
    """,
    "ga": """
        agus an na is tá bhí ar ag le do sa seo sin ní a i de go mar ach nó é sí siad cad cé cathain conas raibh bhfuil
        ón don faoi
    """,
    "hr": """
        i u na se je su bio bila bilo bili da s sa od do za po iz o kao koji koja koje kojih ali ili što tko kada gdje
        kako zašto koliko njegov njezin njihov ovaj ova ovo taj ta to biti ima imaju više među također nije nisu
    """,
    "sl": """
        in v na se je so bil bila bilo bili da s z od do za po iz o kot ki ali pa kaj kdo kdaj kje kako zakaj koliko
        njegov njen njihov ta to biti ima imajo več med tudi ni niso pri
    """,
    "hu": """
        a az és egy hogy nem is de ha volt voltak van vannak ez ezt azt meg mint csak már még ki mi mikor hol hogyan
        miért melyik hány mely amely aki ami által után előtt között alatt lett lesz vagy minden nagyon kell lehet
        szerint
    """,
    "id": """
        yang dan di ke dari untuk dengan pada adalah ini itu dalam oleh sebagai tidak akan juga atau telah bisa dapat
        mereka ada karena apa siapa kapan mana bagaimana mengapa berapa seperti lebih antara saat tersebut menjadi
        sebuah para
    """,
    "lt": """
        ir yra buvo kad su į iš ne tai kaip jis ji jų jo jos bet arba ar kas kur kada kodėl kiek kuris kuri kurie apie
        nuo iki po per tik dar jau būti turi šis ši tarp
    """,
    "lv": """
        un ir bija ka ar uz no ne tas tā kā viņš viņa to bet vai kas kur kad kāpēc cik kurš kura kuri par līdz pēc tikai
        vēl jau būt šis šī starp pie
    """,
    "pl": """
        i w we na się z ze do o od po dla przy za ale lub jako który która które których jego jej ich ten ta to tym tego
        jest są był była było były być że nie tak także jednak aby co kto kiedy gdzie jak jaki jaka jakie ile dlaczego
        ma mam mają dni przez oraz czy już tylko więcej między
    """,
    "ro": """
        și în de la cu pe din care este sunt era erau a fost al ale ai o un unei unui nu se că pentru mai prin ca sau
        dar după fi au are avea lui lor său sa sale acest această acestea ce cine când unde cum cât câte câți între
        până fără foarte
    """,
    "tr": """
        ve bir bu da de ile için olarak olan gibi daha çok en ne kim nerede nasıl neden hangi kaç mi mı mu mü değil var
        yok ancak ama veya ya şu o onun sonra önce kadar tarafından göre her ise idi oldu olduğu ettiği zaman nedir hem
        saat gün yıl neresi neresidir arasında üzerinde içinde kimdir kimdi kimin kimi kimleri kimler nedir neydi neyi
        neye neyin neleri nelerdir nereye nereyi nereden neredeydi nerededir kaçı kaçtır kaçıncı nelere gelir
        gelmektedir adı kimden hangisi hangisidir büyük
    """,
    "vi": """
        và của là có được trong cho không với các một những này đã từ người khi năm về đến như để tại theo cũng ở ra vào
        hay bị sau trên nào gì ai đâu bao nhiêu thế nếu sự việc khi cua khong nguoi duoc nhung nhieu
    """,
    "uk": """
        і й та у в на з із зі до від за для про при що як це не але або чи є був була було були його її їх який яка яке
        які коли де чому скільки хто також між після тільки бути має мають цей ця ці
    """,
    "bg": """
        и в във на с със от до за по при че не се да е са беше бяха като но или който която което които това този тази
        тези той тя те кога къде какво кой как защо колко след между също има бъде
    """,
    "sr": """
        и у на се је су био била било били да с са од до за по из о као који која које којих али или што ко када где
        како зашто колико његов њен њихов овај ова ово тај та то бити има имају више међу такође није нису
    """,
    "mr": "आहे आहेत आणि या हे ही तो ती ते होता होती होते नाही मध्ये काय कोण कधी कुठे कसे साठी पासून त्याच्या केले असे झाला",
    "ne": "छ छन् हो र यो त्यो थियो थिए गर्ने गरेको भएको तथा लागि पनि मा के को कहिले कहाँ कसरी किन नेपाल गर्न",
    "hi": "है हैं और का की के को में से यह वह था थी थे नहीं पर ने क्या कौन कब कहाँ कैसे क्यों लिए एक इस किया गया भी कि",
}

#: Letters that texts in these languages have and others that share their script hardly do.
LETTERS = {
    "cs": "ěřů", "da": "øæ", "de": "ß", "es": "ñ¿", "et": "õ", "fr": "œêèàç", "hr": "đ", "hu": "őű", "lt": "ėųį",
    "lv": "ķļņģ", "no": "øæ", "pl": "łąężźćńś", "pt": "ãõ", "ro": "șțăşţ", "sk": "ľĺŕ", "sv": "åäö", "fi": "äö",
    "tr": "ığş", "uk": "іїєґ", "ru": "ыэё", "sr": "ђјљњћџ", "bg": "ъ",
}  # fmt: skip


# Characters that are written otherwise and mean the same, so that either finds the other. Pure.


# Digits of every script as 0 to 9. Pure.

_OTHER_DIGITS = re.compile(r"(?![0-9])\d")
_ARABIC_SEPARATORS = str.maketrans({"\u066b": ".", "\u066c": ","})
# A year written digit by digit, as before 年, and what its digits are.
_CHINESE_YEAR = re.compile("(?<![〇零一二三四五六七八九十百千])[一二][〇零一二三四五六七八九]{3}(?=年)")
_CHINESE_DIGITS = str.maketrans("〇零一二三四五六七八九", "00123456789")


def plain_digits(text: str) -> str:
    """A text with the decimal digits of every script, and Chinese years, as 0 to 9; of the same length.

    Args:
        text: Any text.

    Example:
        >>> plain_digits("١٩٥٢ १९५२ ๑๙๕๒ 一九五二年")
        '1952 1952 1952 1952年'
    """
    if text.isascii():
        return text
    if _OTHER_DIGITS.search(text):
        text = _OTHER_DIGITS.sub(lambda match: str(unicodedata.decimal(match.group())), text)
        text = text.translate(_ARABIC_SEPARATORS)
    return _CHINESE_YEAR.sub(lambda match: match.group().translate(_CHINESE_DIGITS), text)


# Traditional Chinese characters as simplified ones, so that either finds the other. Pure.


def simplified(text: str) -> str:
    """A text with its traditional Chinese characters as simplified ones; of the same length.

    Characters are exchanged one by one. What two traditional ones share ("發" and "髮", "干" and "乾") is one, in
    simplified texts as in this; whole words that only one side of the strait uses stay as they are.

    Args:
        text: Any text.

    Example:
        >>> simplified("臺灣的圖書館")
        '台湾的图书馆'
    """
    return text if text.isascii() else text.translate(_table())


@cache
def _table() -> dict[int, int]:
    stored = files("recollect.languages").joinpath("simplified.txt").read_text("utf-8")
    pairs = " ".join(line for line in stored.splitlines() if not line.startswith("#")).split()
    return {ord(pair[0]): ord(pair[1]) for pair in pairs}
