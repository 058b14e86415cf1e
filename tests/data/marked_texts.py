"""Texts whose sentences a person has marked: what stands in < and > is one; all else stands between.

`CASES` has a text in every line, `PARAGRAPHS` fifty texts of several lines, with a line of % between them.
"""

import re
from typing import NamedTuple


class Marked(NamedTuple):
    """A text, and its sentences as they were marked."""

    text: str
    sentences: list[str]


def marked(text: str) -> Marked:
    """Take the marks out of a text."""
    return Marked(re.sub("[<>]", "", text), re.findall("<([^<>]*)>", text))


def between(text: str) -> str:
    """Give a marked text without its sentences, {} for each."""
    return re.sub("<[^<>]*>", "{}", text)


CASES = """
<Hello.> <How are you?>
<I am a boy.> <She is a girl.> <We are friends.>
<Come here!> <Sit down!>  <Eat.>
<Who is he?!> <I do not know.>
<What?> <When?> <Where?>
<Really?!> <Yes!!> <No...>
<Mr. Sharma is here.> <He is a teacher.>
<Mrs. Rai and Ms. Gurung came.> <They are sisters.>
<Dr. Karki works in a hospital.> <So does Prof. Thapa.>
<Prof. Dr. Ram Koirala spoke.> <Everybody listened.>
<Capt. Lama and Lt. Col. Basnet met Gen. Rana.>
<We live near St. Mary's School.> <It is big.>
<Take fruit, e.g. apples.> <Wash them.>
<The capital, i.e. Kathmandu, is large.> <I like it.>
<We have rice, lentils, etc.> <Do you want tea?>
<We have rice, lentils, etc. in the kitchen.>
<India vs. Nepal was a good match.> <Nepal won.>
<See Fig. 3 and p. 12.> <Then read Vol. 2, ch. 4.>
<He lives in room No. 5.> <It is small.>
<No.> <I will not go.>
<He said no.> <She said yes.>
<J. R. R. Tolkien wrote it.> <I read it.>
<B. P. Koirala was born in 1914.> <He wrote stories.>
<My friend is called Hari B. Thapa.> <He is a farmer.>
<She lives in the U.S. and he lives in the U.K. now.>
<He came from the U.S.> <The house was empty.>
<The U.S. Army was there.> <We saw it.>
<We met at 5 p.m. yesterday.> <It rained.>
<We met at 5 p.m.> <Ram was late.>
<Come at 10 a.m. or 11 a.m. on Monday.>
<She has a Ph.D. in physics.> <He has an M.A. in history.>
<The shop of Ram & Co. Ltd. is closed.> <Come tomorrow.>
<Apple Inc. makes phones.> <They are expensive.>
<Martin Luther King Jr. spoke.> <We heard him.>
<I was born on Jan. 5.> <He was born in Dec. 1990.>
<It costs approx. five rupees.> <That is cheap.>
<It costs Rs. 500.> <That is much.>
<Use vitamin C.> <We do.>
<Pi is 3.14.> <The price is $2.50.>
<It grew by 4.5 percent.> <Last year it was 1.2.>
<I have 2.> <She has 3.>
<Version 3.11.2 is new.> <Version 2.7 is old.>
<Open file.txt now.> <Then close it.>
<Go to www.example.com.> <Then write to me@example.com.>
<See https://example.com/a?b=c.d for more.> <Thank you.>
<Is it at 192.168.1.1?> <Yes.>
<i am a boy.> <i want tea.> <where is my book?>
<she has e.g. apples.> <he has none.>
<I am a boy. but i am small>
<I came.> <i saw him.> <I'm here.>
<Are you here?> <yes, i am.>
<"Stop!" she said.> <He stopped.>
<"Stop!"> <She left.>
"<I am here.> <You are there.>"
<"Are you coming?" Ram asked.> <He waited.>
<“I am tired,” he said.> <“Let me sleep.”>
<He said "Go."> <"Why?" she asked.>
<She asked (really?) and went.>
<(It was late.)> <We slept.>
<It was late (very late).> <We slept.>
<He wrote “Yes.”> <She wrote “No.”>
<‘I know,’ he said.> <‘So do I.’>
<Wait... what?> <Nothing...> <All is well.>
<Well… maybe tomorrow.> <Maybe not…>
<Yes ...>
1. <Open the door.> 2. <Close the window.>
1) <Wash the rice.> 2) <Cook it.>
(a) <Rice>
(iv) <The last one.>
a. <apples>
1. <Introduction.> <It is short.>
12. <The dog sleeps.>
- <milk>
* <Tea and sugar.> <No coffee.>
• <One.> • <Two.>
– <Hello.>
# <A title>
→ <Turn left.>
☐ <Buy bread.>
---
***
* * *
42
3.14
10:30
2081-05-12
9841-234567
$5
5.
https://example.com/page
me@example.com
www.example.com, me@example.com
✓
😀
😀 <I am happy.> 😀 <Come!> 🎉
<I am happy> 😀
?
...
<5 kg of rice>
<I want tea .>
<Hello , friend .> <How are you ?>
<A tab.>	<And another.>
<Two spaces.>  <Three.>   <End.>
<He left.> — <She stayed.>
<He came - she left.>
<To: all>
<Title: a story.> <It begins here.>
<What a day!> <It's over.>
<Hello.><How are you?>
<We came home.><The house was empty.> <Why?>
<Use System.Out or Node.js or file.Name, not that.>
<म केटा हुँ।> <तिमी को हौ?>
<म जान्छु ।> <तिमी आऊ ।>
<म जान्छु।.> <तिमी आऊ?..> <हुन्छ।>
<घर ठूलो छ।><बगैँचा सानो छ।>
<नमस्ते!> <तपाईंलाई कस्तो छ?>
<हो?><होइन!>
<आज पानी पर्‍यो।> <भोलि घाम लाग्छ।>
<डा. शर्मा आउनुभयो।> <उहाँ अस्पतालमा हुनुहुन्छ।>
<डा॰ शर्मा आउनुभयो।> <बिरामी निको भयो।>
<प्रा. डा. राम कोइराला बोल्नुभयो।>
<वि.सं. २०७२ मा भूकम्प गयो।> <धेरै घर भत्किए।>
<वि. सं. २०७२ मा भूकम्प गयो।>
<बजार ५ कि.मि. टाढा छ।> <म हिँडेर जान्छु।>
<मूल्य रु. ५०० हो।> <यो महँगो छ।>
<कोठा नं. ५ खाली छ।> <साँचो यहाँ छ।>
<के. पी. ओली र बी. पी. कोइराला भेटिए।>
<एस. एल. सी. पास भयो।> <अब म क्याम्पस जान्छु।>
<ने.क.पा. को बैठक बस्यो।> <सबै आए।>
<म घर जान्छु.> <म खुसी छु.> <तिमी?>
<त्यो मेरो हो.> <यो तिम्रो हो.>
<पानी छ.> <दूध छैन.>
<दर १.५ प्रतिशत छ।> <पहिले २.५ थियो।>
<विद्यालय १०.३० बजे लाग्छ।> <ढिलो नगर।>
<तिमी को हौ ?> <म राम हुँ !>
<तिमी किन आएनौ?!> <म बिरामी थिएँ…>
<हेर… त्यहाँ को छ?> <कोही छैन।>
<“म जान्छु।” उनले भने।> <हामी बस्यौँ।>
<“तिमी को हौ?” उसले सोध्यो।> <म बोलिनँ।>
<"म जान्छु।"> <हामी बस्यौँ।>
“<म आएँ।> <मैले देखेँ।>”
<राम (मेरो भाइ) आयो।> <ऊ थाकेको छ।>
<सर्वे भवन्तु सुखिनः॥> <सर्वे सन्तु निरामयाः॥>
<सत्यमेव जयते॥> १॥
१. <चामल>
१) <चामल धोऊ।> २) <पकाऊ।>
(क) <किताब>
क) <कलम>
१। <म केटा हुँ।> २। <तिमी को हौ?>
- <दूध>
• <चिया।> • <चिनी।>
२०८१
९८४१-२३४५६७
।
<मेरो नाम Ram हो।> <I am from Nepal.>
<I said नमस्ते।> <She said hello.>
<Nepal is नेपाल.> <यो हाम्रो देश हो।>
<He lives at 5 Main St. in Pokhara.> <Come and see.>
<www.example.com मा हेर्नुहोस्।> <धन्यवाद।>
<你好。><你好吗？>
<یہ کیا ہے؟> <ٹھیک ہے۔>
<¿Cómo estás?> <¡Muy bien!>
<Was ist das, z.B. hier?> <Nichts.>
<Il est là.> <« Bonjour. »>
"""

PARAGRAPHS = """
<Dear Sita,>

<I am well.> <How are you?>
<Please write soon.>

<Your friend,>
<Maya>
%
<Hello.> <My name is Ram.> <I am a teacher.>
<I live in Pokhara.>   <It is a big city.>
%
<Dear Dr. Sharma,>

<Thank you for your letter.> <I will come on Monday at 10 a.m. with Mr. Rai.> <Is that good?>

<Yours,>
<Hari B. Thapa>
%
<We need these things:>

1. <rice>
2. <milk>
3. <tea and sugar>

<Please buy them today.>
%
<Things to do>

- <Wash the clothes.>
- <Clean the house.> <Open the windows!>
- <Call me.>

---

<Thank you!>
%
<"Where are you going?" she asked.> <"I am going home," he said.>
<She was sad.> <He was happy.>
%
“<I am tired.> <I want to sleep.>”
<The child slept.>
%
<It is 5 p.m.> <The shop is closed.> <Come tomorrow, e.g. at 9.>
<It costs Rs. 500.> <It was Rs. 450.50 last year.>
%
<My phone number is 9841-234567.> <Call me!>

9841-234567
www.example.com
%
<Once there was a king.> <He had three sons.>

<The first son was tall.> <The second son was strong.> <The third son...> <Nobody knew him.>

<The end.>
%
<I am hungry.>	<I want rice.>
<She eats bread.>		<He drinks milk.>
%
  <This line is indented.> <It has two sentences.>
    <This one too.>
%
<Good morning!> 😀 <Did you sleep well?>
<I slept well.> 🎉
%
* * *

<Chapter 1>

<It was raining.> <The road was wet.> <No car came.>

* * *
%
<i want tea.> <where is my book?>
<she does not like milk.>
%
<He went to the U.S. in 1990.> <He came back in 2001.> <Now he lives here.>
<J. R. R. Tolkien never came.>
%
<Hello,>

<what is your name?>


<My name is Gita.> <I am ten years old.>
%
(a) <The book is on the table.>
(b) <The pen is in the bag.>
(c) <Where is the paper?>
%
1) <Read the letter.> <Answer it.>
2) <Go to the post office.>
%
<See page 12.> <Then see Fig. 3 on p. 14.> <What do you see?>
%
<I have 2 brothers.> <Ram has 3.> <Sita has none.>

2 + 3 = 5
%
<She came home late (at 10 p.m.).> <Her mother was angry.> <“Where were you?” she asked.>
%
<Tea: 20 rupees>
<Milk: 50 rupees>
<Bread: 45.50 rupees>
%
<Stop!> <Look!> <Listen!>
<The bus is coming.> <Run!>
%
<My dear brother,>

<Our father is ill.> <He is in the hospital.> <The doctor, Prof. Karki, says that he will be well soon.>

<Come when you can.> <We are waiting for you.>

<With love,>
<Your sister>
%
<प्रिय सीता,>

<म सन्चै छु।> <तिमीलाई कस्तो छ?>
<चाँडै चिठी लेख।>

<तिम्रो साथी,>
<माया>
%
<नमस्ते।> <मेरो नाम राम हो।> <म शिक्षक हुँ।>
<म पोखरामा बस्छु।>   <यो ठूलो सहर हो।>
%
<आदरणीय डा. शर्मा,>

<तपाईंको चिठीका लागि धन्यवाद।> <म सोमबार बिहान १०.३० बजे आउँछु।> <ठीक छ?>

<भवदीय,>
<हरि थापा>
%
<हामीलाई यी कुरा चाहिन्छ:>

१. <चामल>
२. <दूध>
३. <चिया र चिनी>

<कृपया आज किन्नुहोस्।>
%
<आज गर्ने काम>

- <लुगा धुने।>
- <घर सफा गर्ने।> <झ्याल खोल्ने।>
- <मलाई फोन गर्ने।>

---

<धन्यवाद!>
%
<“तिमी कहाँ जान्छौ?” उनले सोधिन्।> <“म घर जान्छु।” उसले भन्यो।>
<उनी दुखी भइन्।> <ऊ खुसी भयो।>
%
“<म थाकेँ।> <म सुत्न चाहन्छु।>”
<बच्चा सुत्यो।>
%
<वि.सं. २०७२ मा ठूलो भूकम्प गयो।> <धेरै घर भत्किए।>
<हाम्रो घर भत्किएन ।> <हामी बाँच्यौँ ।>
%
<मूल्य रु. ५०० हो।> <पोहोर रु. ४५०.५० थियो।> <यो महँगो छ!>
%
<मेरो फोन नम्बर ९८४१-२३४५६७ हो।> <मलाई फोन गर!>

९८४१-२३४५६७
%
<एकादेशमा एउटा राजा थियो।> <उसका तीन छोरा थिए।>

<जेठो छोरा अग्लो थियो।><माइलो छोरा बलियो थियो।><कान्छो छोरा...>

<कथा सकियो।>
%
<म घर जान्छु.> <म खुसी छु.> <तिमी पनि आऊ.>
<बाटो लामो छ.> <म थाकेको छु.>
%
(क) <किताब टेबुलमा छ।>
(ख) <कलम झोलामा छ।>
(ग) <कागज कहाँ छ?>
%
१) <चिठी पढ।> <जवाफ लेख।>
२) <हुलाक जाऊ।>
%
<बजार हाम्रो घरबाट ५ कि.मि. टाढा छ।> <म हिँडेर जान्छु।> <बस छैन।>
%
<के. पी. ओली आए।> <बी. पी. कोइराला लेखक पनि थिए।>
<एस. एल. सी. पास भयो।> <अब म के पढूँ?>
%
<सर्वे भवन्तु सुखिनः।>
<सर्वे सन्तु निरामयाः॥> १॥
%
<रोक!> <हेर!> <सुन!>
<बस आयो।><दौड!>
%
<प्यारो भाइ,>

<बुबा बिरामी हुनुहुन्छ।> <उहाँ अस्पतालमा हुनुहुन्छ।> <डा. कार्की भन्नुहुन्छ, उहाँ चाँडै निको हुनुहुन्छ।>

<सकेसम्म चाँडो आऊ।> <हामी तिमीलाई पर्खिरहेका छौँ।>

<माया गर्ने,>
<तिम्री दिदी>
%
<चिया: २० रुपैयाँ>
<दूध: ५० रुपैयाँ>
<रोटी: ४५.५० रुपैयाँ>
%
<मेरो नाम Ram हो।> <My name is Ram.>
<म नेपालमा बस्छु।> <I live in Nepal.>
%
1. <I am a boy.> <म केटा हुँ।>
2. <She is a girl.> <उनी केटी हुन्।>
%
<Nepal is नेपाल.> <यो हाम्रो देश हो।> <It is beautiful!>

***

<www.example.com मा हेर्नुहोस्।> <Thank you.>
%
<He said नमस्ते।> <She said hello.> <“नमस्ते!” उसले फेरि भन्यो।>
%
<प्रिय Maya,>

<Thank you for the tea.> <चिया मिठो थियो।> <I will come on 12.5.2025 at 5 p.m.>

<धन्यवाद,>
<Hari>
"""


def cases() -> list[str]:
    """List the marked lines."""
    return [line for line in CASES.strip().split("\n") if line]


def paragraphs() -> list[str]:
    """List the marked paragraphs."""
    return PARAGRAPHS.strip("\n").split("\n%\n")
