"""Facts that stand alone, each with its own wordings: Nepal, the sky, the body, simple science."""

from data.chat.fact import read_facts

SINGLE = read_facts("""
nepal > Mount Everest > The highest mountain in the world is Mount Everest.
What is the highest mountain in the world?
Which mountain is the highest in the world?
What is the tallest mountain on Earth?
Which is the world's highest mountain?

nepal > Sagarmatha > Mount Everest is called Sagarmatha in Nepali.
What is Mount Everest called in Nepali?
What is the Nepali name of Mount Everest?
What do people in Nepal call Mount Everest?

nepal > the Nepalese rupee > The money of Nepal is the Nepalese rupee.
What is the money of Nepal called?
What is the currency of Nepal?
Which currency does Nepal use?
What money do people use in Nepal?

nepal > the rhododendron > The national flower of Nepal is the rhododendron.
What is the national flower of Nepal?
Which flower is the national flower of Nepal?
Which flower stands for Nepal?

nepal > the cow > The national animal of Nepal is the cow.
What is the national animal of Nepal?
Which animal is the national animal of Nepal?
Which animal stands for Nepal?

nepal > the danphe > The national bird of Nepal is the danphe.
What is the national bird of Nepal?
Which bird is the national bird of Nepal?
Which bird stands for Nepal?

nepal > India and China > Nepal lies between India and China.
Between which two countries does Nepal lie?
Which countries are the neighbours of Nepal?
Which two countries are next to Nepal?

nepal > Nepali > The official language of Nepal is Nepali.
What is the official language of Nepal?
Which language is the official language of Nepal?
Which language do most people in Nepal understand?

nepal > in Lumbini > The Buddha was born in Lumbini.
Where was the Buddha born?
In which place was the Buddha born?
What is the birthplace of the Buddha?

nepal > Pokhara > Phewa Lake is in Pokhara.
In which city is Phewa Lake?
Where is Phewa Lake?
Which city lies at Phewa Lake?

nepal > Tenzing and Hillary > The first people on top of Mount Everest were Tenzing and Hillary.
Who were the first people on top of Mount Everest?
Who climbed Mount Everest first?
Who was first on the top of Mount Everest?

nepal > the Karnali > The longest river of Nepal is the Karnali.
What is the longest river of Nepal?
Which river is the longest in Nepal?
What is the longest river of Nepal called?

sky > eight > There are eight planets around the sun.
How many planets are there?
How many planets go around the sun?
How many planets does the sun have?

sky > Jupiter > The largest planet is Jupiter.
What is the largest planet?
Which planet is the largest?
What is the biggest planet called?

sky > Mercury > The planet nearest to the sun is Mercury.
Which planet is nearest to the sun?
What is the planet nearest to the sun?
Which planet is closest to the sun?

sky > Earth > We live on the planet Earth.
On which planet do we live?
What is our planet called?
Which planet do people live on?

sky > Mars > The red planet is Mars.
Which planet is called the red planet?
What is the name of the red planet?
Which planet is red?

sky > the moon > The moon goes around the Earth.
What goes around the Earth?
What moves around the Earth?
What circles around the Earth?

sky > the sun > The Earth goes around the sun.
What does the Earth go around?
Around what does the Earth move?
What is in the middle of our planets?

sky > in the east > The sun rises in the east.
Where does the sun rise?
Where does the sun come up?
On which side does the sun rise?

sky > in the west > The sun sets in the west.
Where does the sun set?
Where does the sun go down?
On which side does the sun set?

sky > the sun > The Earth gets its light from the sun.
Where does our light come from by day?
What gives light to the Earth?
Which star is nearest to us?

body > two > A person has two eyes.
How many eyes does a person have?
How many eyes do people have?
How many eyes does a face have?

body > five > A hand has five fingers.
How many fingers does a hand have?
How many fingers are on one hand?
How many fingers are there on a hand?

body > ten > A person has ten toes.
How many toes does a person have?
How many toes do people have?
How many toes are on two feet?

body > the heart > The heart pumps blood through the body.
What pumps blood through the body?
Which part of the body pumps blood?
What moves the blood in our body?

body > the ears > We hear with the ears.
Do you know what we hear with?
What do we hear with?
Which part of the body do we use to hear?

body > the eyes > We see with the eyes.
Do you know what we see with?
What do we see with?
Which part of the body do we use to see?

body > the nose > We smell with the nose.
Do you know what we smell with?
What do we smell with?
Which part of the body do we use to smell flowers?

science > at 0 degrees Celsius > Water freezes at 0 degrees Celsius.
When does water freeze?
At how many degrees does water freeze?
At what temperature does water freeze?

science > at 100 degrees Celsius > Water boils at 100 degrees Celsius.
When does water boil?
At how many degrees does water boil?
At what temperature does water boil?

science > ice > Frozen water is called ice.
What is frozen water called?
What does water become when it freezes?
What do we call water that is frozen?

science > steam > Water becomes steam when it boils.
What does water become when it boils?
What comes out of boiling water?
What rises from a pot of boiling water?

science > cows > Cows give us milk.
Which animals give us milk?
What animals does our milk come from?
Which animals do we get milk from?

science > bees > Honey is made by bees.
Who makes honey?
Which animals make honey?
Who is honey made by?

science > sheep > Sheep give us wool.
Which animals give us wool?
What animals does wool come from?
Which animals do we get wool from?

science > from flour > Bread is made from flour.
What is bread made from?
From what is bread made?
Do you know what bread is made from?

science > seven > A rainbow has seven colours.
How many colours does a rainbow have?
How many colours are in a rainbow?
How many colours are there in a rainbow?

science > three > A triangle has three sides and three corners.
How many sides does a triangle have?
How many sides are there in a triangle?
How many corners does a triangle have?

science > four > A square has four sides and four corners.
How many sides does a square have?
How many sides are there in a square?
How many corners does a square have?

science > light, water and air > Plants need light, water and air.
What do plants need?
What does a plant need to grow?
What do plants need to live?

animal > the giraffe > The tallest animal is the giraffe.
What is the tallest animal?
Which animal is the tallest?
Which animal has the longest neck?

animal > the elephant > The largest animal on land is the elephant.
What is the largest animal on land?
Which animal on land is the largest?
What is the biggest land animal?

animal > the blue whale > The largest animal of all is the blue whale.
What is the largest animal of all?
Which animal is the largest in the world?
What is the biggest animal in the sea?

animal > the cheetah > The fastest animal on land is the cheetah.
What is the fastest animal on land?
Which animal runs fastest?
Which animal on land is the fastest?

animal > bamboo > Pandas eat mostly bamboo.
What do pandas eat?
What does a panda like to eat?
Which plant do pandas eat?

animal > in water > Fish live in water.
Where do fish live?
Where does a fish live?
In what do fish swim?

animal > feathers > Birds have feathers.
What do birds have on their wings?
What covers the body of a bird?
What is a bird covered with?

calendar > January > The first month of the year is January.
What is the first month of the year?
Which month is the first of the year?
With which month does the year begin?

calendar > December > The last month of the year is December.
What is the last month of the year?
Which month is the last of the year?
With which month does the year end?

calendar > February > The shortest month is February.
What is the shortest month?
Which month is the shortest?
Which month has the fewest days?

calendar > summer > The warmest season is summer.
What is the warmest season?
Which season is the warmest?
In which season is it hottest?

calendar > winter > The coldest season is winter.
What is the coldest season?
Which season is the coldest?
In which season is it coldest?

calendar > summer > Summer comes after spring.
Which season comes after spring?
What comes after spring?
Which season follows spring?

calendar > autumn > Autumn comes after summer.
Which season comes after summer?
What comes after summer?
Which season follows summer?

calendar > winter > Winter comes after autumn.
Which season comes after autumn?
What comes after autumn?
Which season follows autumn?

calendar > spring > Spring comes after winter.
Which season comes after winter?
What comes after winter?
Which season follows winter?

world > the Pacific Ocean > The largest ocean is the Pacific Ocean.
What is the largest ocean?
Which ocean is the largest?
What is the biggest ocean called?

world > Asia > The largest continent is Asia.
What is the largest continent?
Which continent is the largest?
What is the biggest continent called?

world > Russia > The largest country is Russia.
What is the largest country?
Which country is the largest?
What is the biggest country in the world?
""")
