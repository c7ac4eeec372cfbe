"""What languages are told apart by where they share a script: words and letters that are frequent in few. Data only.

Languages with a list of function words (`recollect.languages.stopwords`) are known by that list, and by what their
questions ask with, which stands here. These lists decide
nothing but which language a text is in: no word is left out of an analysis because it stands here.
"""

from __future__ import annotations

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
