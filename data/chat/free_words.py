"""List the places, jobs and kinds of work that people tell of, in more variety than world.py has."""


def entries(text: str) -> tuple[str, ...]:
    """Split a text at commas and line ends, without the empty pieces."""
    return tuple(piece for part in text.replace("\n", ",").split(",") if (piece := part.strip()))


# Each fits "I live in {}."
TOWNS = entries(
    """
    New York, Addis Ababa, Stoke on Trent, Pokhara, Lalitpur, Biratnagar, Birgunj, Butwal, Nepalgunj,
    Hetauda, Janakpur, Itahari, Ilam, Gorkha, Dhulikhel, Bandipur, Baglung, Bharatpur, Tulsipur, Panauti, Kirtipur,
    Lahan, Siddharthanagar, Besisahar, Jomsom, Namche Bazaar, Banepa, Beni, Waling, London, Manchester, Liverpool,
    Sheffield, Bristol, Nottingham, Leicester, Newcastle, Oxford, Cambridge, Norwich, Plymouth, Exeter, Bath,
    Southampton, Portsmouth, Canterbury, Hastings, Blackpool, Carlisle, Durham, Whitby, Kings Lynn, Milton Keynes,
    Swansea, Cardiff, Edinburgh, Aberdeen, Dundee, Inverness, Fort William, Dublin, Cork, Galway, Sligo, Waterford,
    Killarney, Lyon, Marseille, Toulouse, Nice, Nantes, Strasbourg, Rennes, Dijon, Avignon, Reims, Le Havre, Brest,
    Hamburg, Munich, Cologne, Stuttgart, Leipzig, Bremen, Hanover, Nuremberg, Heidelberg, Freiburg, Kassel,
    Augsburg, Bad Homburg, Vienna, Graz, Salzburg, Innsbruck, Zurich, Basel, Bern, Lausanne, Amsterdam, Rotterdam,
    The Hague, Groningen, Maastricht, Brussels, Ghent, Bruges, Luxembourg City, Madrid, Seville, Valencia, Bilbao,
    Malaga, Zaragoza, Salamanca, San Sebastian, Toledo, Lisbon, Coimbra, Faro, Braga, Milan, Naples, Turin, Venice,
    Bologna, Verona, Genoa, Palermo, Trieste, Bari, Parma, Thessaloniki, Patras, Nicosia, Zagreb, Split, Dubrovnik,
    Maribor, Sarajevo, Mostar, Novi Sad, Skopje, Tirana, Podgorica, Plovdiv, Varna, Cluj, Brasov, Budapest, Szeged,
    Bratislava, Kosice, Brno, Ostrava, Pilsen, Krakow, Gdansk, Poznan, Lodz, Vilnius, Riga, Tallinn, Tartu,
    Tampere, Turku, Oulu, Gothenburg, Malmo, Uppsala, Oslo, Bergen, Trondheim, Tromso, Copenhagen, Aarhus,
    Reykjavik, Akureyri, Lviv, Odesa, Minsk, Istanbul, Ankara, Izmir, Bursa, Tbilisi, Batumi, Baku, Los Angeles,
    San Francisco, San Antonio, San Jose, Chicago, Houston, Austin, Phoenix, Boston, Seattle, Portland, Detroit,
    Miami, Atlanta, New Orleans, Memphis, Las Vegas, Salt Lake City, Kansas City, Minneapolis, Milwaukee,
    Cincinnati, Pittsburgh, Baltimore, Albany, Santa Fe, Santa Cruz, El Paso, Fort Worth, Tucson, Boise, Anchorage,
    Honolulu, Savannah, Little Rock, Oklahoma City, St Louis, Des Moines, Ann Arbor, Baton Rouge, Green Bay,
    Cedar Rapids, Toronto, Montreal, Ottawa, Calgary, Edmonton, Halifax, Quebec City, Saskatoon, Moose Jaw,
    Mexico City, Guadalajara, Puebla, Oaxaca, Guatemala City, San Salvador, Managua, Panama City, Kingston,
    Santo Domingo, San Juan, Port of Spain, Bridgetown, Medellin, Cali, Cartagena, Quito, Guayaquil, Cuenca, Cusco,
    Arequipa, La Paz, Sucre, Valparaiso, Buenos Aires, Rosario, Mendoza, Montevideo, Asuncion, Sao Paulo,
    Rio de Janeiro, Recife, Curitiba, Porto Alegre, Manaus, Georgetown, Delhi, New Delhi, Mumbai, Chennai,
    Bangalore, Hyderabad, Jaipur, Lucknow, Varanasi, Agra, Kanpur, Indore, Bhopal, Surat, Kochi, Mysore, Madurai,
    Siliguri, Gangtok, Shimla, Guwahati, Shillong, Udaipur, Amritsar, Chandigarh, Ranchi, Thimphu, Paro,
    Chittagong, Sylhet, Khulna, Kandy, Galle, Jaffna, Lahore, Islamabad, Peshawar, Kandahar, Tashkent, Samarkand,
    Almaty, Bishkek, Ulaanbaatar, Beijing, Shanghai, Shenzhen, Chengdu, Xian, Nanjing, Hangzhou, Kunming, Tokyo,
    Osaka, Kyoto, Sapporo, Fukuoka, Kobe, Nagasaki, Sendai, Busan, Incheon, Daegu, Ho Chi Minh City, Da Nang, Hue,
    Bangkok, Chiang Mai, Phuket, Luang Prabang, Phnom Penh, Siem Reap, Yangon, Mandalay, Kuala Lumpur, Penang,
    Jakarta, Bandung, Yogyakarta, Medan, Manila, Davao, Dubai, Abu Dhabi, Doha, Kuwait City, Amman, Beirut, Cairo,
    Luxor, Aswan, Tunis, Oran, Casablanca, Marrakesh, Rabat, Tangier, Bamako, Timbuktu, Accra, Lagos, Ibadan,
    Abuja, Abidjan, Freetown, Monrovia, Banjul, Lome, Cotonou, Douala, Libreville, Luanda, Lusaka, Harare,
    Lilongwe, Blantyre, Maputo, Nairobi, Mombasa, Kisumu, Entebbe, Kigali, Dar es Salaam, Arusha, Cape Town,
    Johannesburg, Durban, Port Elizabeth, Windhoek, Gaborone, Maseru, Sydney, Melbourne, Brisbane, Adelaide,
    Darwin, Hobart, Cairns, Alice Springs, Auckland, Wellington, Dunedin, Queenstown, Suva, Port Moresby
    """
)

# Each fits "I come from {}." and "I live in {}."
COUNTRIES = entries(
    """
    Germany, the Netherlands, South Korea, Bavaria, Texas, Nepal, India, Bhutan, Bangladesh, Sri Lanka, Pakistan,
    the Maldives, China, Japan, Mongolia, Thailand, Vietnam, Laos, Cambodia, Malaysia, Singapore, Indonesia,
    the Philippines, Brunei, Kazakhstan, Uzbekistan, Kyrgyzstan, Tajikistan, Georgia, Armenia, Azerbaijan, Turkey,
    Jordan, Lebanon, Oman, Qatar, Bahrain, Kuwait, the United Arab Emirates, Egypt, Tunisia, Algeria, Morocco,
    Senegal, Mali, Ghana, Nigeria, the Ivory Coast, Sierra Leone, Liberia, Guinea, the Gambia, Togo, Benin,
    Cameroon, Gabon, Angola, Zambia, Zimbabwe, Malawi, Mozambique, Kenya, Uganda, Rwanda, Tanzania, South Africa,
    Namibia, Botswana, Lesotho, Madagascar, Mauritius, Ethiopia, England, Scotland, Wales, Ireland, France, Spain,
    Portugal, Italy, Switzerland, Austria, Belgium, Luxembourg, Denmark, Norway, Sweden, Finland, Iceland, Estonia,
    Latvia, Lithuania, Poland, the Czech Republic, Slovakia, Hungary, Slovenia, Croatia, Serbia, Bosnia,
    Montenegro, Albania, North Macedonia, Greece, Bulgaria, Romania, Moldova, Ukraine, Cyprus, Malta, Canada,
    the United States, Mexico, Guatemala, Honduras, El Salvador, Nicaragua, Costa Rica, Panama, Cuba, Jamaica,
    Haiti, the Dominican Republic, Trinidad, Barbados, the Bahamas, Colombia, Venezuela, Ecuador, Peru, Bolivia,
    Chile, Argentina, Uruguay, Paraguay, Brazil, Australia, New Zealand, Fiji, Samoa, Papua New Guinea, California,
    Florida, Cornwall, Yorkshire, Tuscany, Sicily, Catalonia, Brittany, Saxony
    """
)

# Each fits "I am {}." and "I work as {}."
JOBS = entries(
    """
    an accountant, a bus driver, a primary school teacher, a police officer, a software engineer, a vet,
    a lorry driver, a train driver, a tram driver, a delivery driver, a crane operator, a forklift driver,
    a driving instructor, a yoga teacher, a swimming teacher, a music teacher, a piano teacher, a history teacher,
    an English teacher, a science teacher, an art teacher, a nursery school teacher, a secondary school teacher,
    a head teacher, a teaching assistant, a language teacher, a school secretary, a school librarian,
    a nursery nurse, a dental nurse, a school nurse, a night nurse, a brain surgeon, an eye doctor,
    a family doctor, a children's doctor, a care worker, a social worker, a youth worker, a speech therapist,
    a fitness trainer, a football coach, a tennis coach, a basketball coach, a dog trainer, a dog walker,
    a horse trainer, a tour guide, a mountain guide, a trekking guide, a museum guide, an estate agent,
    an insurance agent, a bank clerk, a bank manager, an office manager, an office worker, a project manager,
    a sales manager, a shop manager, a restaurant manager, a factory manager, a shop assistant,
    a personal assistant, a market trader, a street vendor, a flower seller, a book dealer, an antique dealer,
    a car dealer, a bicycle mechanic, an aircraft mechanic, a civil engineer, an electrical engineer,
    a sound engineer, a railway engineer, a chemical engineer, a mining engineer, an airline pilot,
    a helicopter pilot, an air traffic controller, a ship's captain, a ticket inspector, a ticket seller,
    a station master, a road worker, a construction worker, a building inspector, a health inspector,
    a farm worker, a forest ranger, a park ranger, a park keeper, a dairy farmer, a sheep farmer, a pig farmer,
    a fish farmer, a tea grower, a coffee grower, a fruit grower, a wine maker, a basket maker, a furniture maker,
    a violin maker, a clock maker, a candle maker, a hat maker, a toy maker, a dressmaker, a pastry chef,
    a sushi chef, a school cook, a kitchen porter, a hotel receptionist, a medical secretary, a legal secretary,
    a tax adviser, a careers adviser, a data analyst, a market researcher, a web designer, a fashion designer,
    a game designer, an interior designer, a costume designer, a jewellery designer, a computer programmer,
    a computer technician, a dental technician, a system administrator, a database administrator, a news reader,
    a television presenter, a newspaper editor, a film director, a film critic, a stage manager, a camera operator,
    a make-up artist, a wedding photographer, a fashion model, a jazz musician, an opera singer, a street musician,
    a church organist, a ballet dancer, a circus clown, a comic artist, a children's author, a crime writer,
    a science journalist, a customs officer, a prison officer, a fire officer, a security guard,
    a private detective, a crossing guard, a traffic warden, a window cleaner, a chimney sweep, a refuse collector,
    a bin man, a landscape gardener, a marine biologist, a research chemist, a weather forecaster,
    a court interpreter, a wedding planner, an event organiser, a call centre agent, a warehouse worker,
    a bicycle courier, a coal miner, a deep-sea diver, a piano tuner, a glass blower, a stonemason,
    a house painter, a truck driver, a lawyer, a judge, a solicitor, a notary, a teacher, a doctor, a nurse,
    a farmer, a cook, a chef, a baker, a butcher, a grocer, a waiter, a waitress, a barista, a bartender,
    a hairdresser, a barber, a tailor, a carpenter, a plumber, an electrician, a bricklayer, a roofer, a welder,
    a blacksmith, a locksmith, a goldsmith, a watchmaker, a shoemaker, a potter, a weaver, a painter, a sculptor,
    an actor, a singer, a violinist, a pianist, a drummer, a composer, a writer, a poet, a journalist,
    a translator, an architect, a surveyor, an engineer, a chemist, a physicist, a biologist, a geologist,
    an astronomer, a historian, an archaeologist, a psychologist, a pharmacist, a dentist, a midwife, a surgeon,
    a paramedic, a physiotherapist, an optician, a firefighter, a soldier, a sailor, a fisherman, a beekeeper,
    a shepherd, a gardener, a florist, a librarian, a secretary, a cleaner, a cashier, a shopkeeper, a pilot,
    a porter, a photographer, a magician, a lifeguard
    """
)

# Each fits "I {}." and "you {}".
WORK = entries(
    """
    teach maths, drive a taxi, repair bicycles, work in a bank, work for the railway, run a small hotel,
    sell vegetables, study medicine, look after children, teach the piano, teach small children,
    teach people to swim, teach young people to drive, teach at a university, train horses,
    train young footballers, drive a bus, drive a lorry, drive a school bus, drive a tractor, drive a night train,
    drive tourists to the mountains, fly helicopters, fly passenger planes, steer a ferry, repair cars,
    repair old radios, repair computers, repair shoes, repair roofs, repair washing machines,
    mend broken furniture, mend fishing nets, mend clothes, restore old houses, build houses, build bridges,
    build wooden boats, build stone walls, build model railways, work in a library, work in a hospital,
    work in a bakery, work at the airport, work on a farm, work on a ship, work on building sites,
    work for a newspaper, work for an insurance company, work for the city council, work for a charity,
    work with old people, work with blind people, work with computers, work with horses, work as a volunteer,
    work from home, run a bookshop, run a cafe, run a guest house, run a youth hostel, run a sports club,
    run a dance school, run a driving school, run a flower shop, run a laundry, run a bicycle shop,
    run a small farm, run a travel agency, manage a cinema, manage a football team, manage a big warehouse,
    own a sawmill, own a vineyard, own three ice cream vans, sell fruit at the market, sell flowers,
    sell second-hand books, sell used cars, sell insurance, sell train tickets, sell tea and coffee, sell fish,
    sell carpets, sell handmade jewellery, buy and sell stamps, study law, study history, study physics,
    study the stars, study rare birds, study old languages, look after sick animals, look after old people,
    look after a lighthouse, look after elephants, look after the school garden, take care of babies,
    take wedding photographs, take tourists around town, take people on safari, guide tourists, guide climbers,
    lead walking tours, conduct an orchestra, play in an orchestra, play in a band, play the organ in church,
    play professional football, sing at weddings, dance in a theatre, act in a theatre, write books for children,
    write crime novels, write songs, write for a magazine, translate novels, translate letters and contracts,
    interpret at conferences, edit school books, print newspapers, print posters, bind books, paint portraits,
    paint signs, draw comics, draw maps, draw plans for houses, design gardens, design bridges,
    design computer games, make furniture, make cheese, make violins, make films, make honey, make clay pots,
    make leather bags, make maps, bake wedding cakes, cook in a school, cook for a big hotel,
    cook for two hundred people, wash dishes in a restaurant, serve drinks in a bar, serve customers,
    clean offices, clean windows, clean swimming pools, cut hair, cut down trees, cut and polish stones,
    grow roses, grow rice, grow apples and pears, grow vegetables, plant trees, keep bees, keep sheep, breed dogs,
    raise pigs, milk cows, catch fish, deliver letters, deliver pizzas, deliver milk, collect rubbish,
    collect taxes, answer the telephone, book flights for people, check tickets on trains, check food in factories,
    test new cars, test drinking water, treat patients at home, help people find work, help children with homework,
    help farmers, nurse sick people, put out fires, guard a museum, read the news, report on sports,
    organise weddings, plan railway lines, plan trips for schools, install heating systems, install solar panels,
    lay bricks, weld pipes, tune pianos, weave carpets, dig wells, mine coal, advise young families,
    do scientific research, do the accounts, pack boxes in a warehouse, load ships, sort letters
    """
)

# Each fits "I {} umbrellas."
WORK_VERBS = entries(
    """
    make, sell, repair, design, paint, collect and sell, write about, deliver, buy, buy and sell, clean, mend,
    draw, build, produce, test, check, pack, import, export, photograph, restore, decorate, transport, store,
    order, hire out, rent out, lend, trade in, deal in, invent, improve, inspect, sort, polish, wrap, load, unload,
    advertise, study, make and sell, make and repair, clean and repair, design and make, sell and repair,
    look after, work with, take pictures of, teach people about, do research on, read about, write books about,
    supply, manufacture, assemble, label, send out, give talks about, show people
    """
)

# Each fits "I sell {}."
WORK_THINGS = entries(
    """
    umbrellas, clocks, wooden toys, wedding cakes, school books, musical instruments, alarm clocks, pocket watches,
    bicycles, motorbikes, cars, racing cars, lorries, buses, vans, tractors, model trains, model ships, boats,
    sailing boats, rowing boats, canoes, ferries, aeroplanes, helicopters, gliders, balloons, kites, drones,
    parachutes, tents, sleeping bags, rucksacks, handbags, leather bags, paper bags, wallets, belts,
    leather gloves, hats, straw hats, woollen hats, scarves, silk scarves, ties, shirts, trousers, skirts, dresses,
    evening dresses, coats, winter coats, raincoats, jackets, leather jackets, socks, shoes, running shoes,
    dancing shoes, children's shoes, hiking boots, rubber boots, slippers, sandals, uniforms, masks, wigs, buttons,
    zips, ribbons, curtains, rugs, blankets, pillows, mattresses, towels, tablecloths, quilts, cushions, beds,
    bunk beds, tables, chairs, wooden chairs, garden chairs, rocking chairs, armchairs, desks, school desks,
    shelves, bookshelves, cupboards, wardrobes, stools, ladders, doors, windows, shop windows, gates, fences,
    roofs, tiles, bricks, staircases, fireplaces, stoves, ovens, pizza ovens, fridges, washing machines,
    sewing machines, coffee machines, vending machines, vacuum cleaners, irons, kettles, teapots, cups,
    coffee cups, plates, glasses, wine glasses, bottles, jugs, vases, clay pots, flower pots, pans, frying pans,
    knives, kitchen knives, spoons, wooden spoons, scissors, baskets, boxes, jewellery boxes, barrels, buckets,
    brooms, brushes, combs, lamps, street lamps, candles, lanterns, torches, batteries, solar panels,
    wind turbines, engines, pumps, pipes, bathtubs, wash basins, radiators, locks, keys, bells, church bells,
    bicycle bells, doorbells, telephones, computers, laptops, printers, cameras, film cameras, video games,
    card games, jigsaw puzzles, crossword puzzles, chess sets, playing cards, dolls' houses, teddy bears, puppets,
    rocking horses, spinning tops, toy cars, footballs, tennis rackets, cricket bats, skis, sledges, skateboards,
    surfboards, fishing rods, fishing nets, saddles, swings, electric guitars, violins, cellos, pianos, flutes,
    trumpets, drums, harps, accordions, organs, bamboo flutes, old radios, televisions, record players, records,
    loudspeakers, microphones, books, cookery books, picture books, comic books, diaries, calendars, maps,
    city maps, globes, atlases, magazines, posters, postcards, birthday cards, stamps, medals, trophies, paintings,
    portraits, picture frames, photographs, statues, mosaics, antiques, rings, gold rings, earrings, bracelets,
    pearls, beads, brooches, pens, pencils, coloured pencils, paintbrushes, rulers, erasers, paper flowers,
    microscopes, telescopes, binoculars, thermometers, compasses, spectacles, sunglasses, hearing aids,
    wheelchairs, walking sticks, robots, traffic lights, road signs, shop signs, flags, bridges, houses,
    wooden houses, garden sheds, greenhouses, garden tools, saws, drills, screws, ropes, chains, tyres, prams,
    wheelbarrows, bird houses, dog baskets, beehives, fountains, garden gnomes, cakes, birthday cakes, biscuits,
    sandwiches, sausages, dumplings, pickles, sweets, chocolates, herbs, apples, oranges, cut flowers, roses,
    fruit trees, Christmas trees, Christmas decorations, seeds, soaps, perfumes
    """
)

# Each fits "I work {}."
WORK_PLACES = entries(
    """
    in a bank, at the airport, in a shoe factory, on a tea farm, for an oil company, in a hospital, in a library,
    in a bakery, in a bookshop, in a flower shop, in a toy shop, in a shoe shop, in a supermarket,
    in a department store, in a car factory, in a paper factory, in a furniture factory, in a chocolate factory,
    in a toy factory, in a brick factory, in a carpet factory, in a sugar factory, in a school,
    in a primary school, in a nursery school, in a music school, in a museum, in a theatre, in a cinema,
    in an art gallery, in a hotel, in a restaurant, in a small cafe, in a hotel kitchen, in a school kitchen,
    in a call centre, in an office, in a travel agency, in a law firm, in a laboratory, in a research institute,
    in a pharmacy, in a dental practice, in a children's home, in a nursing home, in a prison, in a sawmill,
    in a coal mine, in a quarry, in a vineyard, in a garden centre, in a greenhouse, in a laundry, in a warehouse,
    in a garage, in a bicycle workshop, in a carpenter's workshop, in a pottery, in a print shop, in a hair salon,
    in a sports shop, in a film studio, in a recording studio, in a national park, in a zoo, in a power station,
    in a dairy, in a brewery, in a fish market, in the town hall, in the harbour, in a tax office,
    at the railway station, at the bus station, at the post office, at the university, at a petrol station,
    at a swimming pool, at a golf club, at an animal shelter, at a riding school, at a youth hostel,
    at a language school, at a weather station, at the fire station, at the police station, at the market,
    at the city court, at a sports centre, at a radio station, on a farm, on a dairy farm, on a sheep farm,
    on a coffee farm, on a fishing boat, on a cruise ship, on a ferry, on a building site, on an oil platform,
    on a night train, for an insurance company, for a newspaper, for a software company, for a bus company,
    for an airline, for the railway, for a publisher, for a charity, for a television station, for a building firm
    """
)

# Each fits "I teach {}." and "I study {}."
SUBJECTS = entries(
    """
    maths, history, computer science, French, English, German, Italian, Portuguese, Dutch, Swedish, Norwegian,
    Danish, Finnish, Polish, Russian, Greek, Latin, Turkish, Arabic, Hebrew, Hindi, Nepali, Sanskrit, Tibetan,
    Urdu, Tamil, Chinese, Japanese, Korean, Vietnamese, Thai, Swahili, physics, chemistry, biology, geography,
    geology, astronomy, economics, accounting, business, marketing, law, medicine, nursing, pharmacy, psychology,
    sociology, philosophy, anthropology, archaeology, linguistics, literature, English literature, poetry,
    journalism, art, art history, music, music theory, drama, dance, photography, graphic design, fashion design,
    architecture, engineering, electrical engineering, civil engineering, mechanical engineering, agriculture,
    forestry, botany, zoology, marine biology, ecology, statistics, geometry, algebra, logic
    """
)

# Each fits "I like {}."
HOBBIES = entries(
    """
    kayaking, Greek salad, old films, collecting stamps, rowing, sailing, surfing, windsurfing, diving,
    snorkelling, swimming in lakes, ice skating, roller skating, skateboarding, skiing, cross-country skiing,
    snowboarding, sledging, football, rugby, cricket, baseball, basketball, volleyball, beach volleyball, netball,
    tennis, table tennis, badminton, squash, golf, minigolf, bowling, snooker, archery, fencing, judo, karate,
    wrestling, boxing, trampolining, yoga, Pilates, running, jogging, hiking, long walks, cycling, rock climbing,
    horse riding, camping, fishing, paragliding, orienteering, ballroom dancing, tango, ballet, tap dancing,
    singing in a choir, playing the piano, playing the drums, playing the flute, playing the harmonica,
    playing chess, playing cards, board games, video games, card tricks, crossword puzzles, sudoku, quizzes,
    riddles, chess, draughts, dominoes, collecting coins, collecting shells, collecting postcards,
    collecting toy cars, collecting teapots, reading novels, reading poems, reading newspapers, detective stories,
    fairy tales, ghost stories, comics, travel books, poetry, history books, writing poems, writing letters,
    keeping a diary, learning languages, drawing, painting landscapes, pottery, knitting, sewing, embroidery,
    weaving, woodwork, wood carving, origami, calligraphy, photography, making jewellery, making jam,
    model railways, building model ships, flying kites, repairing old radios, repairing bicycles, growing tomatoes,
    gardening, picking mushrooms, picking berries, birdwatching, stargazing, feeding ducks, walking in the rain,
    sleeping late, getting up early, travelling by train, visiting museums, visiting castles, going to the theatre,
    going to concerts, watching football, watching cartoons, cooking for friends, baking biscuits, baking bread,
    barbecues, picnics, fireworks, magic tricks, puppet shows, the circus, opera, jazz, rock music,
    classical music, country music, the blues, reggae, hip hop, brass bands, film music, love songs, silent films,
    westerns, comedies, nature films, elephants, dolphins, whales, owls, parrots, eagles, swans, hedgehogs,
    squirrels, otters, wolves, bears, koalas, kangaroos, camels, donkeys, horses, goats, dogs, rabbits,
    guinea pigs, hamsters, tortoises, frogs, butterflies, spiders, goldfish, seals, roses, tulips, sunflowers,
    orchids, lilies, lavender, cactuses, bamboo, old trees, wild flowers, cherry blossom, pizza, lasagne,
    spaghetti, risotto, pancakes, waffles, dumplings, momos, sushi, ramen, noodle soup, fried rice, lentil soup,
    tomato soup, onion soup, potato salad, fruit salad, chicken curry, vegetable curry, fish and chips,
    roast chicken, grilled fish, fried eggs, mashed potatoes, chips, mushrooms, olives, garlic bread,
    goat's cheese, blue cheese, Turkish delight, Danish pastries, apple pie, cheesecake, carrot cake,
    chocolate cake, lemon tart, ice cream, dark chocolate, peanut butter, strawberry jam, honey, yoghurt, popcorn,
    roasted nuts, cherries, peaches, pineapples, watermelon, mangoes, lychees, figs, black tea, mint tea,
    ginger tea, masala tea, iced tea, strong coffee, cappuccino, lemonade, orange juice, apple juice, tomato juice,
    coconut water, ginger beer, lassi, milkshakes
    """
)
