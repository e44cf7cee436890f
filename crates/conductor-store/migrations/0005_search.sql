-- Where each record stands among all, and the words that it is found by. Both can be made anew from the records. The words
-- are made by us and parted by spaces; a table of this kind keeps no text, only where each word is.

CREATE TABLE record_places (
    place INTEGER PRIMARY KEY NOT NULL,
    stream TEXT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL
);

CREATE VIRTUAL TABLE record_words USING fts5(
    words, content = '', columnsize = 0, detail = none, tokenize = "ascii tokenchars '_='"
);
