"""Function words by language: articles, pronouns, prepositions, conjunctions, auxiliaries.

The lists are short on purpose. A word that could carry a question ("first", "against", "work") stays searchable:
its inverse document frequency already makes a frequent word light, so a list saves space more than it gains quality.
"""

from __future__ import annotations

_WORDS = {
    "en": """
        a an the this that these those i me my mine we us our ours you your yours he him his she her hers it its they
        them their theirs myself ourselves yourself yourselves himself herself itself themselves who whom whose which
        what when where why how and or but nor if then than as so because while until of at by for with about into onto
        to from in on upon within between through during am is are was were be been being do does did doing done have
        has had having can could shall should will would may might must not no there here such too very also just only
        any some each both either neither other another own same again once e.g i.e eg ie etc don't doesn't didn't
        isn't aren't wasn't weren't hasn't haven't hadn't can't cannot couldn't won't wouldn't shouldn't mustn't
        i'm you're we're they're he's she's it's that's there's who's what's where's how's let's i've you've we've
        they've i'll you'll he'll she'll we'll they'll i'd you'd he'd she'd we'd they'd
    """,
    "de": """
        der die das den dem des ein eine einer eines einem einen kein keine keiner keines keinem keinen ich mich mir
        mein meine meiner meines meinem meinen du dich dir dein deine deiner deines deinem deinen er ihn ihm sein seine
        seiner seines seinem seinen sie ihr ihre ihrer ihres ihrem ihren es wir uns unser unsere unserer unseres
        unserem unseren euch euer eure ihnen man sich selbst dieser diese dieses diesem diesen jener jene jenes jenem
        jenen welcher welche welches welchem welchen wer wen wem wessen was wann wo warum wie und oder aber sondern
        denn wenn als ob weil dass daß damit so auch nur noch schon doch nicht nichts in im an am auf aus bei beim bis
        durch für gegen hinter mit nach ohne über um unter von vom vor während zu zum zur zwischen bin bist ist sind
        seid war warst waren wart gewesen sei wäre wären werde wirst wird werden wurde wurden worden habe hast hat
        haben habt hatte hatten hätte hätten kann kannst können könnte konnte muss musst müssen musste soll sollen
        sollte will wollen wollte darf dürfen mag möchte hier da dort dann also sehr z.b d.h zb dh
    """,
    "fr": """
        le la les l un une des du de d au aux ce cet cette ces c je j me m moi mon ma mes tu te t toi ton ta tes il
        elle on se s soi son sa ses nous notre nos vous votre vos ils elles leur leurs lui eux y en qui que qu quoi
        dont où quel quelle quels quelles lequel laquelle quand comment pourquoi et ou mais donc or ni car si comme
        parce lorsque puisque à dans par pour sur sous avec sans entre vers chez depuis pendant jusque jusqu ne n pas
        plus non suis es est sommes êtes sont été étant étais était étions étiez étaient sera seront serait seraient
        soit soient ai as a avons avez ont eu ayant avais avait avions aviez avaient aura auront aurait auraient ait
        aient fait faire peut peuvent pouvait doit doivent là ici aussi très même mêmes tout toute tous toutes
    """,
    "es": """
        el la los las lo un una unos unas de del al a ante bajo con contra desde durante en entre hacia hasta para por
        según sin sobre tras y e o u ni pero sino que si como cuando donde porque pues aunque mientras yo me mí mi mis
        mío mía tú te ti tu tus tuyo tuya él ella ello ellos ellas se sí su sus suyo suya le les nos nosotros nosotras
        nuestro nuestra nuestros nuestras vosotros vosotras os vuestro vuestra usted ustedes este esta esto estos estas
        ese esa eso esos esas aquel aquella aquello aquellos aquellas quien quienes qué quién cuál cuáles cual cuales
        cómo cuándo dónde cuyo cuya no ya más muy también tan soy eres es somos son era eras eran fue fueron ser sido
        siendo será serán sería serían sea sean estoy está estamos están estaba estaban estar estado he has ha hemos
        han había habían haber habido haya hay puede pueden podía debe deben
    """,
    "it": """
        il lo la i gli le l un uno una di a da in con su per tra fra del dello della dei degli delle dell al allo alla
        ai agli alle all dal dallo dalla dai dagli dalle dall nel nello nella nei negli nelle nell sul sullo sulla sui
        sugli sulle sull e ed o od ma se che chi cui quale quali come quando dove perché mentre anche non né io me mi
        mio mia miei mie tu te ti tuo tua tuoi tue lui lei egli ella esso essa si sé suo sua suoi sue noi ci nostro
        nostra nostri nostre voi vi vostro vostra vostri vostre loro ne questo questa questi queste quello quella
        quelli quelle quel quei sono sei è siamo siete era erano ero essere stato stata stati state sarà saranno
        sarebbe sia siano ho hai ha abbiamo avete hanno aveva avevano avere avuto abbia può possono deve devono più
        molto così c d s
    """,
    "pt": """
        o a os as um uma uns umas de do da dos das em no na nos nas num numa ao à aos às por pelo pela pelos pelas para
        com sem sob sobre entre até desde durante contra e ou mas nem que se como quando onde porque porquê pois embora
        enquanto eu me mim meu minha meus minhas tu te ti teu tua teus tuas ele ela eles elas lhe lhes si seu sua seus
        suas nós nosso nossa nossos nossas vós vosso vossa você vocês este esta isto estes estas esse essa isso esses
        essas aquele aquela aquilo aqueles aquelas quem qual quais cujo cuja o não já mais muito também sou és é somos
        são era eram foi foram ser sido sendo será serão seria seriam seja sejam estou está estamos estão estava
        estavam estar estado tenho tem temos têm tinha tinham ter tido há havia haver haja pode podem deve devem
    """,
    "nl": """
        de het een der den des dit dat deze die ik mij me mijn jij je jou jouw u uw hij hem zijn zij ze haar wij we ons
        onze jullie hen hun zich zelf wie wat welke welk waar wanneer waarom hoe en of maar want als dan toen omdat
        zodat terwijl hoewel in op aan van voor met bij door over onder tussen tegen naar om uit tot te ter ten zonder
        na binnen sinds ben bent is zijn was waren geweest wees word wordt worden werd werden geworden heb hebt heeft
        hebben had hadden gehad kan kunt kunnen kon konden moet moeten moest mag mogen mocht zal zult zullen zou zouden
        wil willen niet geen er hier daar nog al ook zo zeer wel men iets niets
    """,
    "sv": """
        en ett den det de dem denna detta dessa jag mig min mitt mina du dig din ditt dina han honom hans hon henne
        hennes vi oss vår vårt våra ni er ert era deras sig sin sitt sina man vem vad vilken vilket vilka vars när var
        varför hur och eller men utan för att om som än så därför medan i på av till från med utan vid under över
        mellan genom mot efter före hos inom är var varit vara blir bli blev blivit har hade haft ha kan kunde ska
        skall skulle vill ville måste får fick inte icke ej där här då nu också mycket bara även någon något några
        ingen inget inga
    """,
    "da": """
        en et den det de dem denne dette disse jeg mig min mit mine du dig din dit dine han ham hans hun hende hendes
        vi os vores i jer jeres deres sig sin sit sine man hvem hvad hvilken hvilket hvilke hvis hvornår hvor hvorfor
        hvordan og eller men for at om som end så fordi mens i på af til fra med uden ved under over mellem gennem mod
        efter før hos inden er var været være bliver blive blev blevet har havde haft have kan kunne skal skulle vil
        ville må måtte ikke der her da nu også meget kun nogen noget nogle ingen intet
    """,
    "no": """
        en ei et den det de dem denne dette disse jeg meg min mi mitt mine du deg din di ditt dine han ham hans hun
        henne hennes vi oss vår vårt våre dere deres sin si sitt sine seg man hvem hva hvilken hvilket hvilke hvis når
        hvor hvorfor hvordan og eller men for å at om som enn så fordi mens i på av til fra med uten ved under over
        mellom gjennom mot etter før hos innen er var vært være blir bli ble blitt har hadde hatt ha kan kunne skal
        skulle vil ville må måtte ikke ikkje eg ein eit me dykk der her da då nå også veldig bare noen noe ingen
        intet
    """,
    "fi": """
        minä minun minua minut minulle minulla sinä sinun sinua sinut sinulle hän hänen häntä hänet hänelle me meidän
        meitä meille te teidän teitä teille he heidän heitä heille tämä tämän tätä tässä tästä tähän nämä näiden näitä
        näissä tuo tuon tuota nuo niiden niitä se sen sitä siinä siitä siihen ne niissä niistä joka jonka jota jossa
        josta johon jotka joiden joita mikä minkä mitä missä mistä mihin kuka kenen ketä milloin miksi miten kuinka ja
        tai sekä mutta vaan vai että jos kun koska kuin vaikka jotta niin myös olla olen olet on olemme olette ovat
        oli olivat ollut olleet ole olisi olisivat en et ei emme ette eivät eikä voi voivat pitää täytyy kanssa ilman
        ennen jälkeen yli ali noin mukaan varten itse nyt vielä jo vain hyvin
    """,
    "ru": """
        и в во на с со к ко у о об обо от до из за по для при про без над под между через перед после или либо но а да
        же ли бы б не ни что чтобы как так если когда где куда откуда почему зачем потому поэтому пока хотя то тоже
        также я меня мне мной мой моя моё мое мои моего ты тебя тебе твой твоя твоё твои он его ему им нём нем она её
        ее ей ею ней оно мы нас нам нами наш наша наше наши вы вас вам вами ваш ваша ваше ваши они их ими них себя
        себе собой свой своя своё свои своего этот эта это эти этого этой этом эту этих этим тот та те того той том ту
        тех тем кто кого кому кем чего чему чем который которая которое которые которого которой которых какой какая
        какое какие быть был была было были есть будет будут будем может могут можно нужно надо уже ещё еще очень
        только лишь весь вся всё все всего всех там тут здесь вот
    """,
    "ar": """
        في من إلى على عن مع منذ حتى خلال بين ضد دون قبل بعد عند لدى حول ضمن عبر و أو ثم بل لكن لكنه لكنها ولكن إن أن إنه
        إنها أنه أنها بأن لأن فإن وأن كأن هذا هذه ذلك تلك هؤلاء أولئك هنا هناك الذي التي الذين اللذان اللتان اللواتي هو
        هي هم هن هما أنا نحن أنت أنتم وهو وهي وهم ما ماذا متى أين كيف لماذا كم أي أية هل لا لم لن ليس ليست لما كان كانت
        كانوا يكون تكون يكن تكن كما إذا لو قد فقد لقد كل بعض غير أيضا فقط له لها لهم به بها بهم فيه فيها منه منها منهم
        عليه عليها إليه إليها عنه عنها مما فيما بما حيث عندما بينما يتم تم
    """,
    "el": """
        ο η το οι τα του της των τον την τους τις στο στη στην στον στους στις στα ένας μια μία ένα ενός μιας έναν και
        κι ή αλλά όμως ούτε είτε ότι πως που να θα για με σε από προς κατά μετά παρά αντί χωρίς μέχρι ως έως μεταξύ υπό
        περί δια αν εάν όταν ενώ αφού επειδή γιατί διότι ώστε καθώς όπως πού πότε πώς ποιος ποια ποιο ποιοι ποιες ποιους
        ποιου ποιον ποιαν τι πόσο πόσα πόσοι πόσες πόσους δεν δε μην μη όχι εγώ εσύ αυτός αυτή αυτό αυτοί αυτές αυτά
        αυτού αυτής αυτών αυτόν αυτήν αυτούς εμείς εσείς μου σου μας σας εκείνος εκείνη εκείνο οποίος οποία οποίο οποίοι
        οποίες οποίου οποίων οποίους είμαι είσαι είναι είμαστε είστε ήταν ήμουν έχω έχει έχουν έχουμε είχε είχαν εδώ
        εκεί πολύ πιο επίσης μόνο κάθε όλα όλοι όλες
    """,
    "hi": """
        का की के को में से पर ने तक और या एवं तथा व कि जो जिस जिसे जिसके जिसकी जिसका जिसमें जिससे जिन जिन्हें जिनके
        जिनकी यह ये वह वे इस इसे इसके इसकी इसका इसमें इससे इन इन्हें इनके इनकी इनका उस उसे उसके उसकी उसका उसमें उससे उन
        उन्हें उनके उनकी उनका मैं मुझे मेरा मेरे मेरी हम हमें हमारा हमारे हमारी तुम तुम्हें आप आपको आपका आपके आपकी है
        हैं हूँ हो था थे थी थीं होता होती होते होना हुआ हुई हुए होगा होगी होंगे करता करती करते करना करने किया किए गया गई
        गए जाता जाती जाते जाना जाने रहा रही रहे सकता सकती सकते चाहिए क्या कौन किस किसे किसने किसके किसकी किसका कब कहाँ
        कहां क्यों कैसे कैसा कैसी कितना कितने कितनी कौनसा कौनसी नहीं न भी ही तो लेकिन परंतु मगर अगर यदि जब तब जहाँ जहां
        वहाँ वहां यहाँ यहां जैसे वाला वाले वाली लिए साथ द्वारा अपना अपने अपनी
    """,
    "ro": """
        a al ale ai un o unei unui unor unii unele și sau ori dar însă ci iar nici în într întru la de din dintre prin
        printre pe pentru cu fără după până sub peste spre către între despre ca că să dacă când cât câtă câți câte cum
        unde ce cine cui căruia căreia cărora care cărui cărei căror deși deoarece fiindcă eu mă îmi meu mea mei mele tu
        te ție îți tău ta el ea ei ele îl îi le li lui lor își se sine său sa săi sale ne nostru noastră voi vă vouă
        vostru voastră acest această aceasta acesta acești aceste aceștia acestea acestui acestei acestor acel acea acei
        acele acela aceea aceia acelea sunt ești este e suntem sunteți era erau eram fost fi fie fiind va vor aș ar am
        ați au are avem aveți avea aveau nu da foarte doar numai și-a s-a s-au i-a aici acolo tot toți toate si fara
        pana catre dupa insa cand cat cati cate
    """,
    "tr": """
        ve veya ya da de ki ile ama fakat ancak lakin ise eğer çünkü için gibi kadar göre karşın rağmen üzere bir bu o
        bunlar onlar bunu onu bunun onun onların bunların buna ona bunda onda bundan ondan ben beni bana bende benim sen
        seni sana senin biz bizi bize bizim siz sizi size sizin kendi kendisi kim kimi kime kimin kimler ne neyi neye
        nedir neden niçin niye nasıl nerede nereye nereden hangi hangisi kaç mi mı mu mü mıdır midir mudur müdür değil
        var yok olan olarak olduğu olduğunu oldu olur olup olması idi imiş dır dir en çok daha hem her hiç bile sadece
        hep tüm bazı böyle şöyle öyle burada orada şurada diye yani icin cok degil gore nasil hic tum boyle oldugu
        oldugunu cunku kac
    """,
    "vi": """
        và hoặc hay nhưng mà thì là của cho với từ đến tại trong trên dưới ở vào ra về theo bởi do vì nên để khi nếu tuy
        dù rằng như cũng đã đang sẽ được bị có các những một này kia đó ấy đây nào gì ai đâu nhiêu mấy chưa chẳng tôi
        chúng rất quá lắm chỉ còn đều vẫn lại nữa rồi
    """,
}


def stopwords(language: str) -> frozenset[str]:
    """The function words of a language, lower case; empty where there is no list.

    Args:
        language: ISO 639-1 code.
    """
    return frozenset(_WORDS.get(language, "").split())
