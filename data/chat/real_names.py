"""Names that people and pets really have, and words that no name may be."""

from data.en_ne.people import NAMES


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# (Roman letters, Devanagari, whether a woman's)
NEPALI = (
    *NAMES,
    ("Asha", "आशा", True), ("Rita", "रीता", True), ("Radha", "राधा", True), ("Nisha", "निशा", True),
    ("Mina", "मीना", True), ("Puja", "पूजा", True), ("Mohan", "मोहन", False), ("Arjun", "अर्जुन", False),
    ("Sagar", "सागर", False), ("Gopal", "गोपाल", False), ("Raju", "राजु", False), ("Nabin", "नवीन", False),
    ("Laxmi", "लक्ष्मी", True), ("Saraswati", "सरस्वती", True), ("Parbati", "पार्वती", True), ("Kamala", "कमला", True),
    ("Bimala", "विमला", True), ("Sarita", "सरिता", True), ("Sunita", "सुनिता", True), ("Kabita", "कविता", True),
    ("Sabita", "सविता", True), ("Manisha", "मनिषा", True), ("Anju", "अञ्जु", True), ("Manju", "मञ्जु", True),
    ("Shanti", "शान्ति", True), ("Durga", "दुर्गा", True), ("Ganga", "गंगा", True), ("Jamuna", "जमुना", True),
    ("Tara", "तारा", True), ("Usha", "उषा", True), ("Devi", "देवी", True), ("Indira", "इन्दिरा", True),
    ("Sharmila", "शर्मिला", True), ("Urmila", "उर्मिला", True), ("Pramila", "प्रमिला", True), ("Renu", "रेणु", True),
    ("Rekha", "रेखा", True), ("Sangita", "संगीता", True), ("Samjhana", "सम्झना", True), ("Kalpana", "कल्पना", True),
    ("Bhawana", "भावना", True), ("Archana", "अर्चना", True), ("Aarati", "आरती", True), ("Nirmala", "निर्मला", True),
    ("Sushila", "सुशीला", True), ("Krishna", "कृष्ण", False), ("Shiva", "शिव", False), ("Bishnu", "विष्णु", False),
    ("Ganesh", "गणेश", False), ("Mahesh", "महेश", False), ("Ramesh", "रमेश", False), ("Dinesh", "दिनेश", False),
    ("Rajesh", "राजेश", False), ("Naresh", "नरेश", False), ("Umesh", "उमेश", False), ("Prakash", "प्रकाश", False),
    ("Deepak", "दीपक", False), ("Sanjay", "सञ्जय", False), ("Bijay", "विजय", False), ("Ajay", "अजय", False),
    ("Anil", "अनिल", False), ("Sunil", "सुनिल", False), ("Rajan", "राजन", False), ("Suman", "सुमन", False),
    ("Pawan", "पवन", False), ("Kamal", "कमल", False), ("Bimal", "विमल", False), ("Nirmal", "निर्मल", False),
    ("Gagan", "गगन", False), ("Surya", "सूर्य", False), ("Chandra", "चन्द्र", False), ("Bharat", "भरत", False),
    ("Madan", "मदन", False), ("Manoj", "मनोज", False), ("Santosh", "सन्तोष", False), ("Ashok", "अशोक", False),
    ("Binod", "विनोद", False), ("Pramod", "प्रमोद", False), ("Roshan", "रोशन", False), ("Sandip", "सन्दीप", False),
    ("Narayan", "नारायण", False), ("Govinda", "गोविन्द", False),
)  # fmt: skip

WOMEN = words("""
    Agnes Aisha Alice Amelia Amy Angela Anna Astrid Barbara Bella Carla Caroline Cecilia Chloe Clara Claudia Diana Dora
    Edith Elena Elisa Ella Emily Emma Erika Esther Eva Fatima Fiona Frida Greta Hana Hannah Heidi Helen Helga Ida
    Ingrid Irene Isabel Jane Jasmin Judith Julia Karen Kate Klara Laila Lara Laura Linda Lisa Lucia Lucy Maja Margaret
    Maria Martha Mary Matilda Mila Miriam Monika Nadia Naomi Natasha Nina Nora Olga Olivia Paula Petra Rachel Rebecca
    Ruth Sandra Sara Sonja Stella Susan Tanja Teresa Tina Ursula Vera Wanda Yasmin Zara
""")  # fmt: skip
MEN = words("""
    Adam Ahmed Alan Albert Amir Andrew Antonio Arthur Ben Boris Brian Bruno Carlos Charles Daniel David Diego Edgar
    Edward Elias Emil Eric Felix Frank George Hamid Harry Hassan Henry Hiroshi Hugo Ibrahim Igor Ivan Jacob James
    John Jonas Joseph Juan Julian Karl Kenji Kevin Kofi Leo Leon Louis Lucas Luis Marco Mario Martin Matteo Miguel
    Mohamed Nathan Nick Noah Oliver Omar Oscar Otto Pablo Paul Pedro Peter Philip Ralf Robert Samuel Simon Stefan
    Thomas Victor Vincent Walter William Yusuf
""")  # fmt: skip

PETS = words("""
    Kale Moti Tiku Bhote Lali Chiku Puntu Seti Luna Rex Fido Rover Bello Misty Whiskers Snowy Rocky Lucky Coco Buddy
    Daisy Biscuit Toffee Mittens Socks Smokey Nutmeg Patch Fluffy Peanut Pickle Muffin Noodle Ziggy
""")  # fmt: skip

# The corpora of translations and stories tell of these, in one of the two alphabets.
FAMILIAR = frozenset(words("""
    Ram Hari Bikash Suresh Sita Gita Maya Anita Asha Rita Radha Nisha Mina Puja Mohan Arjun Sagar Gopal Raju Nabin
    Kabita Tara Chandra Kale Moti Tiku Bhote Lali Chiku Puntu Seti
"""))  # fmt: skip

# Words, places and accidents that the syllables make.
NOT_NAMES = frozenset(words("""
    ababa adolin alas alba albino alibi alky ally also alto ameba amino ammo amoeba anas angina anima ankara anus
    arena armada army aroma arson artisan arty baby bahama bamako banaba banana bananas basin belis belly bendy
    benin benty beta biscuit bito bobo bodo body bogy bolero bony boro brava bravo chama chary chili china dada data
    defy demy deny devotor dido digitus dinero dita dodo dogy dola domino donator dopa dory dosel doty dozy drama
    ebola edema eden editor elfin emir enema errata fady fama faro fatima felis feminin femora fetor fetus fifo
    filator florida florin fluffy gala gamin gary gator gaza genera geneva gory granada grano habitan habitus
    halitus halo havana haya hazel hazy henna herero hero hitlin hula idol idola indo infidel inky inly intima into
    iran janitor janty jato java jojoba july juno juror jury kaka kakapo karo kilo kimono koran lady lama lamina
    lateran latus lazio lazy legator libel lido lily lima limo limy lipa lola lory lotto lotus lulu lusaka malaya
    malaysia mama manila many mara marina marry marsala maru mary media medina melanin memo menu mesel meso meta
    milo mimosa mini minima mino misty model modena monitor mono moral moron mosel motel motif motor muffin nada
    nasalis nasi navel nazi negator nevada nono noodle nova nylon olden orator oriya osaka oslo otus pagina pajama
    palermo panama panel pansy papa para param patch patina peanut pedo pelota penin penis pepper peril peru peso
    petitor pity poky polo poly pony posy potato primo puma pussy rabin radula rebel relator rely resin resina
    retina robin rocky roman romano ronin rosin rosy rota roto rotor rover rowdy sahara salami saliva sandy sanny
    santa satan satanas satin sedan selena semen senator sera sesame shadow shady shako shaky shaly shapy shily
    shiny shita silo sisal sissy sizel soda sofa solo soma sona sonata soso soya stasi sudan sula sumo susu tabu
    tango tapir tedy tidy tiger tina tiny titan tito tofu toga tokyo tomato toro tory totem toto toxin traditor
    trama troy tuna ulna ultima ultimo ulva uran urin urina urinal urino vagina vagitus vary vela velum vena venin
    verona very veteran veto villa vino visa visitor vista vita vitamin viva vomit vomitus vulva wady waka waky waly
    wany wary wasel widen wily winy wiry witan yeti yoyo yuma zany zebra zero zona
"""))  # fmt: skip
