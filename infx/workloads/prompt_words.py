"""Ordinary words that prompts are made of: 3 to 8 letters, one token each (after a space) for the
tokenizers of common models."""

from __future__ import annotations

__all__ = ["WORDS"]

_TEXT = """
able about above across action actor adult advice after again age air alarm album alive almost
alone along also always amount animal answer apple apply area arm around arrive art article
artist ask atom aunt author autumn away baby back bad bag balance ball band bank bar base basic
basket bath beach bean bear beat beauty bed bee before begin behind bell below belt bench bend
best better big bike bird birth black blade blanket block blue board boat body bone book border
born both bottle bottom bowl box boy branch brave bread break breath brick bridge bright bring
broad brother brown brush build bus busy butter button buy cabin cake call calm camp can candle
cap car card care carry case castle cat catch cause cave cell center chain chair chance change
charge cheap check cheese chest chicken child choice church circle city class clay clean clear
climb clock close cloth cloud club coal coast coat code coffee coin cold color column come
common cook cool copper copy corn corner cost cotton count country course court cover cow crew
crop cross crowd crown cup current curve custom cut cycle daily dance dark data date daughter
day deal dear deep deer desert desk detail dinner direct dish doctor dog dollar door double down
draw dream dress drink drive drop dry dust duty each ear early earth east easy eat edge effect
egg eight either electric empty end energy engine enough enter equal even evening event ever
every exact example eye face fact fair fall family famous far farm fast father favor feather
feed feel feet fence few field figure fill film final find fine finger finish fire firm first
fish five fix flag flat flight floor flow flower fly fold follow food foot force forest forget
fork form forward four frame free fresh friend front fruit full fun fur future game garden gate
gather general gentle gift girl give glad glass goal gold good grain grand grass gray great
green ground group grow guard guess guest guide hair half hall hand happy harbor hard hat head
health hear heart heat heavy height help herb here hero high hill history hold hole holiday home
honest honey hope horse hotel hour house human hundred hunt hurry ice idea inch include indeed
inside invite iron island item jacket job join joint joke journey joy judge juice jump just keen
keep key kick kind king kitchen kite knee knot know label lady lake lamp land language large
last late laugh law layer lead leaf learn leather leave left leg lemon length less lesson letter
level library lid life lift light like limit line lion lip list listen little live load local
long look lose loud love low luck lunch machine main make man many map march mark market master
match material matter meal mean measure meat medal meet melt member memory metal method middle
mile milk mill mind mine minute mirror mix model modern money month moon more morning most
mother motion mountain mouse mouth move much mud music nail name narrow nation nature near neat
neck need needle nerve nest net never new news next nice night nine noise noon north nose note
nothing notice number nut oak object ocean offer office often oil old one onion only open
opinion orange orchard order other oven owner page paint pair palace pan paper parent park part
party pass past path pattern pay peace pen pencil people pepper perfect period person phone
photo piano picture piece pig pile pilot pin pipe place plain plan plane plant plastic plate
play please plenty pocket poem point pole pond poor porch port post pot potato pound powder
power present press price print prize proof proud public pull pump pure push quality quarter
queen question quick quiet quilt quite rabbit race radio rail rain raise ranch range rare rate
raw reach read ready real reason record red region regular rent repair reply report rest result
rice rich ride right ring rise river road rock roll roof room root rope rose rough round row
royal rule run rush sad safe sail salad salt same sand save scale school science score screw sea
search season seat second secret section see seed self sell send sense serve seven shade shadow
shape share sharp sheep sheet shelf shell ship shirt shoe shop short shoulder show side sign
silence silk silver simple since sing sister size skill sky sleep slide slope slow small smell
smile smoke smooth snake snow soap social sock soft soil solid some son song soon sort sound
soup south space speak special speed spend spoon sport spot spring square stage stair stamp
stand star start state station stay steam steel stem step stick still stock stomach stone store
storm story straight street string strong student style sugar summer sun supply sure surface
sweet swim system table tail take talk tall tape task taste teach team tell ten tent test thank
theory there thick thin thing third thread three throw thumb ticket tide tie tiger tight till
time tiny tired title today toe together token tomato tone tool tooth top total touch tour
toward tower town toy track trade train travel tray tree trip truck true trust try tube tune
turn twelve twice twin two type umbrella uncle under unit until upper use usual valley value van
vast vein verb very vessel view village violin visit voice vote voyage wagon wait walk wall want
warm wash watch water wave way weak wealth weather week weight welcome well west wet wheat wheel
where while white whole wide wife wild will win wind window wing winter wire wise wish woman
wonder wood wool word work world worm wrap write yard year yellow yes yet young zebra zero zone
"""

WORDS: tuple[str, ...] = tuple(_TEXT.split())
