"""Numbers, months and units of measure as languages write them. Data only."""

from __future__ import annotations

from fractions import Fraction


def listed(words: str) -> frozenset[str]:
    """Words that are easier to read in a row than one below the other."""
    return frozenset(words.split())


def _numbered(words: str, start: int = 0, step: int = 1) -> dict[str, int]:
    """``a|b c``: each next place is ``step`` more; ``|`` parts spellings of one number."""
    return {
        word: start + step * place for place, spellings in enumerate(words.split()) for word in spellings.split("|")
    }


#: Small numbers and tens, by language.
CARDINALS: dict[str, dict[str, int]] = {
    "en": _numbered(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen"
    )
    | _numbered("twenty thirty forty|fourty fifty sixty seventy eighty ninety", 20, 10),
    "de": _numbered(
        "null eins zwei|zwo drei vier fünf|fuenf sechs sieben acht neun zehn elf zwölf|zwoelf dreizehn vierzehn fünfzehn "
        "sechzehn siebzehn achtzehn neunzehn"
    )
    | _numbered("zwanzig dreißig|dreissig vierzig fünfzig sechzig siebzig achtzig neunzig", 20, 10),
    "fr": _numbered(
        "zéro un|une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize "
        "dix-sept dix-huit dix-neuf vingt"
    )
    | _numbered("trente quarante cinquante soixante", 30, 10)
    | {"soixante-dix": 70, "quatre-vingts": 80, "quatre-vingt": 80, "quatre-vingt-dix": 90, "septante": 70},
    "es": _numbered(
        "cero uno|una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
        "diecisiete dieciocho diecinueve veinte veintiuno|veintiún veintidós veintitrés veinticuatro veinticinco "
        "veintiséis veintisiete veintiocho veintinueve treinta"
    )
    | _numbered("cuarenta cincuenta sesenta setenta ochenta noventa", 40, 10),
    "it": _numbered(
        "zero uno|una due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici "
        "sedici diciassette diciotto diciannove venti"
    )
    | _numbered("trenta quaranta cinquanta sessanta settanta ottanta novanta", 30, 10)
    | {"ventiquattro": 24, "venticinque": 25, "ventotto": 28},
    "pt": _numbered(
        "zero um|uma dois|duas três quatro cinco seis sete oito nove dez onze doze treze catorze|quatorze quinze "
        "dezesseis|dezasseis dezessete|dezassete dezoito dezenove|dezanove vinte"
    )
    | _numbered("trinta quarenta cinquenta sessenta setenta oitenta noventa", 30, 10),
    "nl": _numbered(
        "nul één twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien "
        "achttien negentien"
    )
    | _numbered("twintig dertig veertig vijftig zestig zeventig tachtig negentig", 20, 10),
}

#: By what a number word multiplies what stands before it.
MULTIPLIERS: dict[str, dict[str, int]] = {
    "en": {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9},
    "de": {"hundert": 100, "tausend": 1_000},
    "fr": {"cent": 100, "cents": 100, "mille": 1_000},
    "es": {"cien": 100, "ciento": 100, "mil": 1_000},
    "it": {"cento": 100, "mille": 1_000, "mila": 1_000},
    "pt": {"cem": 100, "cento": 100, "mil": 1_000},
    "nl": {"honderd": 100, "duizend": 1_000},
}

#: Words that join the parts of one number.
JOINERS = frozenset({"and", "und", "et", "y", "e", "en"})

ORDINALS: dict[str, dict[str, int]] = {
    "en": _numbered(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
        1,
    ),
    "de": {
        f"{stem}{ending}": number
        for stem, number in _numbered(
            "erst zweit dritt viert fünft sechst siebt|siebent acht neunt zehnt elft zwölft", 1
        ).items()
        for ending in ("e", "en", "er", "es", "em")
    },
    "fr": _numbered(
        "premier|première deuxième troisième quatrième cinquième sixième septième huitième neuvième dixième", 1
    ),
    "es": _numbered("primer|primero|primera segundo|segunda tercer|tercero|tercera cuarto|cuarta quinto|quinta", 1),
    "it": _numbered("primo|prima secondo|seconda terzo|terza quarto|quarta quinto|quinta", 1),
    "pt": _numbered("primeiro|primeira segundo|segunda terceiro|terceira quarto|quarta quinto|quinta", 1),
    "nl": _numbered("eerste tweede derde vierde vijfde zesde zevende achtste negende tiende", 1),
}

#: Words for counts that are no cardinals.
COUNTS: dict[str, dict[str, Fraction]] = {
    "en": {
        "half": Fraction(1, 2), "twice": Fraction(2), "double": Fraction(2), "dozen": Fraction(12),
        "thirds": Fraction(1, 3), "quarters": Fraction(1, 4), "once": Fraction(1),
    },
    "de": {
        "halb": Fraction(1, 2), "halbe": Fraction(1, 2), "hälfte": Fraction(1, 2), "doppelt": Fraction(2),
        "zweimal": Fraction(2), "dreimal": Fraction(3), "einmal": Fraction(1), "dutzend": Fraction(12),
    },
}  # fmt: skip

#: Words of numbers that are articles, pronouns or other words too: they offer their number, and ask for none.
AMBIGUOUS = listed(
    "one once eins ein eine un une uno una um uma één first second erste ersten erster zweite premier première "
    "primer primero primera segundo segunda primo prima secondo seconda primeiro primeira eerste einmal sei "
    "six|fr null double dozen prime cent cents mille cien mil cuarto cuarta quarto quarta quinto thirds quarters "
    "acht achte"
)

MONTHS: dict[str, int] = {
    **_numbered(
        "january|jan|januar|jänner|janvier|enero|gennaio|janeiro|januari|января|ocak|styczeń|stycznia "
        "february|feb|februar|février|febrero|febbraio|fevereiro|februari|февраля|şubat|lutego "
        "march|mar|märz|maerz|mars|marzo|março|maart|марта|mart|marca "
        "april|apr|avril|abril|aprile|апреля|nisan|kwietnia "
        "may|mai|mayo|maggio|maio|mei|мая|mayıs|maja "
        "june|jun|juni|juin|junio|giugno|junho|июня|haziran|czerwca "
        "july|jul|juli|juillet|julio|luglio|julho|июля|temmuz|lipca "
        "august|aug|août|agosto|augustus|августа|ağustos|sierpnia "
        "september|sep|sept|septembre|septiembre|settembre|setembro|сентября|eylül|września "
        "october|oct|oktober|okt|octobre|octubre|ottobre|outubro|октября|ekim|października "
        "november|nov|novembre|noviembre|novembro|ноября|kasım|listopada "
        "december|dec|dezember|dez|décembre|diciembre|dicembre|dezembro|декабря|aralık|grudnia",
        1,
    )
}


def _spelled(table: dict[str, str]) -> dict[str, str]:
    return {word: unit for unit, words in table.items() for word in words.split()}


#: Units of measure by the words and signs that stand behind a number.
UNITS: dict[str, str] = _spelled(
    {
        "second": "seconds sec secs sekunde sekunden seconde secondes segundos secondi",
        "minute": "minute minutes min mins minuten minuto minutos minuti 分钟 分",
        "hour": "hour hours h hr hrs stunde stunden std heure heures hora horas ora ore uur 小时 時間 hourly stündlich",
        "day": "day days d tag tage tagen tages jour jours día días dia dias giorno giorni dag dagen 天 日間 일 дней дня gün",
        "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane weken 周 週間 недель недели hafta",
        "month": "month months monat monate monaten mois mes meses mese mesi mês maand maanden 个月 ヶ月 месяцев ",
        "quarter": "quarter quarters quartal quartale trimestre trimestres",
        "year": "year years yr yrs jahr jahre jahren jahres ans année années año años anno anni ano anos jaar 年 лет yıl",
        "%": "% percent per-cent pct prozent percentage pourcent procent 퍼센트 процентов yüzde",
        "EUR": "€ eur euro euros",
        "USD": "$ usd us$ dollar dollars",
        "GBP": "£ gbp pound pounds pfund",
        "CHF": "chf franken francs",
        "JPY": "¥ jpy yen",
        "mm": "mm", "cm": "cm", "m": "m metre metres meter meters mètre mètres metros metri",
        "km": "km kilometre kilometres kilometer kilometers kilomètres kilómetros",
        "g": "g gram grams gramm", "kg": "kg kilogram kilograms kilo kilos kilogramm",
        "kB": "kb kilobyte kilobytes", "MB": "mb megabyte megabytes", "GB": "gb gigabyte gigabytes", "TB": "tb terabyte",
        "kWh": "kwh", "Wh": "wh", "°": "° °c degrees degree grad celsius",
        "person": "person persons people employees employee personen mitarbeiter personnes personas",
        "times": "times mal fois veces volte vezes keer",
        "ft": "ft foot feet", "mi": "mile miles meilen", "in": "inch inches", "yd": "yard yards", "lb": "lb lbs",
        "l": "l litre litres liter liters litros", "gal": "gallon gallons", "oz": "ounce ounces oz",
        "character": "character characters zeichen",
    }
)  # fmt: skip

#: Units that are one another's multiples: the base, and how many of it.
CONVERSIONS: dict[str, tuple[str, Fraction]] = {
    "second": ("minute", Fraction(1, 60)), "minute": ("minute", Fraction(1)), "hour": ("minute", Fraction(60)),
    "day": ("minute", Fraction(1440)), "week": ("minute", Fraction(10080)),
    "month": ("month", Fraction(1)), "quarter": ("month", Fraction(3)), "year": ("month", Fraction(12)),
    "mm": ("m", Fraction(1, 1000)), "cm": ("m", Fraction(1, 100)), "m": ("m", Fraction(1)), "km": ("m", Fraction(1000)),
    "g": ("g", Fraction(1)), "kg": ("g", Fraction(1000)), "Wh": ("Wh", Fraction(1)), "kWh": ("Wh", Fraction(1000)),
}  # fmt: skip

#: Endings of compounds that end in a unit ("Arbeitstage", "Kalenderwochen").
COMPOUND_UNITS = {
    "tage": "day", "tagen": "day", "wochen": "week", "monate": "month", "monaten": "month", "jahre": "year",
    "jahren": "year", "stunden": "hour", "minuten": "minute",
}  # fmt: skip

#: What multiplies the number before it.
SCALES: dict[str, int] = {
    word: factor
    for factor, words in {
        10**3: "thousand k tausend tsd mille mil mila 千",
        10**4: "万 萬 만",
        10**6: "million millions mn mio m mln millionen millones milioni milhões millón 百万",
        10**8: "亿 億 억",
        10**9: "billion billions bn b mrd milliarde milliarden milliard milliards miliardi bilhões",
        10**12: "trillion trillions tn billionen",
    }.items()
    for word in words.split()
}
