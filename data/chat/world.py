"""What people say about themselves: where they live, what they like and do, which animal they have."""

# Fits "I live in {}."
PLACES = (
    "Kathmandu", "Pokhara", "Lalitpur", "Bhaktapur", "Biratnagar", "Birgunj", "Butwal", "Dharan", "Nepalgunj",
    "Hetauda", "Janakpur", "Dhangadhi", "Itahari", "Ilam", "Gorkha", "Palpa", "Jumla", "Mustang", "Namche",
    "Tansen", "Dhulikhel", "Bandipur", "Baglung", "Surkhet", "Dolpa", "Lumbini", "London", "Paris", "Berlin",
    "Madrid", "Rome", "Vienna", "Lisbon", "Dublin", "Oslo", "Stockholm", "Copenhagen", "Helsinki", "Athens",
    "Prague", "Warsaw", "Budapest", "Zurich", "Istanbul", "Cairo", "Nairobi", "Lagos", "Accra", "Delhi", "Mumbai",
    "Kolkata", "Dhaka", "Colombo", "Bangkok", "Hanoi", "Beijing", "Shanghai", "Tokyo", "Osaka", "Seoul", "Sydney",
    "Melbourne", "Toronto", "Boston", "Chicago", "Lima",
)  # fmt: skip

# Each fits "I like {}."
FOODS = (
    "rice", "bread", "soup", "cheese", "honey", "chocolate", "ice cream", "momos", "noodles", "curry", "pizza",
    "salad", "eggs", "apples", "bananas", "mangoes", "oranges", "grapes", "potatoes", "tomatoes", "cake", "yoghurt",
    "popcorn",
)  # fmt: skip
DRINKS = ("tea", "coffee", "milk", "water", "lemonade", "orange juice", "apple juice", "hot chocolate")
GAMES = (
    "football", "cricket", "volleyball", "basketball", "tennis", "chess", "badminton", "cards", "hockey",
    "table tennis",
)  # fmt: skip
ACTIVITIES = (
    "reading books", "singing", "dancing", "swimming", "running", "cooking", "drawing", "painting",
    "climbing trees", "flying kites", "playing the guitar", "listening to music",
    "watching films", "writing letters", "telling stories", "fishing", "gardening", "walking in the forest",
    "looking at the stars", "baking bread", "taking pictures",
)  # fmt: skip
LIKES = (*FOODS, *DRINKS, *GAMES, *ACTIVITIES)

# Each fits "I am {}."
JOBS = (
    "a teacher", "a doctor", "a nurse", "a farmer", "a driver", "a cook", "a baker", "a student", "a shopkeeper",
    "a tailor", "a carpenter", "a painter", "a singer", "a dancer", "a writer", "a pilot", "a postman",
    "a gardener", "a mason", "a guide", "a porter", "a potter", "a weaver", "a dentist", "an engineer", "an artist",
    "an actor", "an electrician",
)  # fmt: skip
COLOURS = (
    "red", "blue", "green", "yellow", "orange", "purple", "pink", "white", "black", "brown", "grey", "turquoise",
)  # fmt: skip
ANIMALS = (
    "elephants", "tigers", "lions", "monkeys", "horses", "cows", "goats", "sheep", "bears", "rabbits", "foxes",
    "wolves", "deer", "owls", "eagles", "ducks", "dolphins", "whales", "penguins", "giraffes", "zebras", "pandas",
    "frogs", "butterflies",
)  # fmt: skip
PETS = (
    "dog", "cat", "rabbit", "goat", "parrot", "horse", "hamster", "duck", "pony", "puppy", "kitten", "pigeon",
    "turtle",
)  # fmt: skip
AGES = range(5, 91)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
SEASONS = ("spring", "summer", "autumn", "winter")

# (Nepali, English). A place takes मा (म पोखरामा बस्छु।), a like मन पर्छ (मलाई चिया मन पर्छ।): none changes its form.
PLACES_NE = (
    ("काठमाडौँ", "Kathmandu"), ("पोखरा", "Pokhara"), ("ललितपुर", "Lalitpur"), ("भक्तपुर", "Bhaktapur"),
    ("विराटनगर", "Biratnagar"), ("वीरगन्ज", "Birgunj"), ("बुटवल", "Butwal"), ("धरान", "Dharan"),
    ("नेपालगन्ज", "Nepalgunj"), ("हेटौँडा", "Hetauda"), ("जनकपुर", "Janakpur"), ("धनगढी", "Dhangadhi"),
    ("इटहरी", "Itahari"), ("इलाम", "Ilam"), ("गोरखा", "Gorkha"), ("पाल्पा", "Palpa"), ("जुम्ला", "Jumla"),
    ("मुस्ताङ", "Mustang"), ("तानसेन", "Tansen"), ("धुलिखेल", "Dhulikhel"), ("बन्दिपुर", "Bandipur"),
    ("बागलुङ", "Baglung"), ("सुर्खेत", "Surkhet"), ("लुम्बिनी", "Lumbini"), ("दिल्ली", "Delhi"), ("लन्डन", "London"),
)  # fmt: skip
LIKES_NE = (
    ("चिया", "tea"), ("दूध", "milk"), ("पानी", "water"), ("कफी", "coffee"), ("भात", "rice"), ("दाल", "lentils"),
    ("रोटी", "bread"), ("दही", "yoghurt"), ("मह", "honey"), ("मासु", "meat"), ("आँप", "mangoes"), ("केरा", "bananas"),
    ("स्याउ", "apples"), ("सुन्तला", "oranges"), ("अण्डा", "eggs"), ("आलु", "potatoes"), ("गोलभेँडा", "tomatoes"),
    ("माछा", "fish"), ("फुटबल", "football"), ("क्रिकेट", "cricket"), ("भलिबल", "volleyball"), ("गीत", "songs"),
    ("सङ्गीत", "music"), ("फूल", "flowers"), ("कथा", "stories"),
)  # fmt: skip
COLOURS_NE = (
    ("रातो", "red"), ("निलो", "blue"), ("हरियो", "green"), ("पहेँलो", "yellow"), ("सेतो", "white"), ("कालो", "black"),
)  # fmt: skip
