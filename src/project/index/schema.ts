/** Marks a database as an index of kit: "kit1" in ASCII. */
export const applicationId = 0x6b697431;

/** Raise it with every change of the tables or of what adapters make of a file. */
export const schemaVersion = 1;

/**
 * Tables of the index. Everything in it can be made again from the files of the project.
 *
 * - `folders`: the tree as the last pass saw it, so that an unchanged folder is not listed again.
 *   Names are joined by "/", the one character that no name has.
 * - `files`: sources. `guidelines` and `diagnostics` are JSON with a checksum over both.
 * - `blocks`: `key` as in `block-key.ts`; the id follows from `kind`, `base` and `n` (`block-id.ts`);
 *   `data` as in `stored-block.ts`.
 * - `refs`: what blocks name, by the name: "b" + base of a block, "m" + mentioned path (`refs.ts`).
 * - `search`: the words of the blocks; its text is not kept twice (contentless).
 */
export const tables = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE folders (
  path TEXT PRIMARY KEY, folders TEXT NOT NULL, files TEXT NOT NULL, sources TEXT NOT NULL,
  stamps BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, hash TEXT NOT NULL,
  guidelines TEXT NOT NULL, guideline_count INTEGER NOT NULL, diagnostics TEXT NOT NULL,
  checksum INTEGER NOT NULL
);
CREATE TABLE features (feature TEXT, file INTEGER, PRIMARY KEY (feature, file)) WITHOUT ROWID;
CREATE TABLE classes (code INTEGER PRIMARY KEY, blocks INTEGER NOT NULL);
CREATE TABLE dates (
  path TEXT PRIMARY KEY, first INTEGER, last INTEGER NOT NULL, hash TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE blocks (
  key INTEGER PRIMARY KEY, file INTEGER NOT NULL, position INTEGER NOT NULL, kind INTEGER NOT NULL,
  base TEXT NOT NULL, n INTEGER NOT NULL, data TEXT NOT NULL, checksum INTEGER NOT NULL
);
CREATE TABLE refs (target TEXT NOT NULL, key INTEGER NOT NULL);
CREATE VIRTUAL TABLE search USING fts5(
  title, body, tags, marks, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2'
);
INSERT INTO search (search, rank) VALUES ('hashsize', 33554432);
`;

/** Made after the first fill: sorting once is cheaper than keeping order all along. */
export const indexes = `
CREATE INDEX blocks_by_file ON blocks (file, position);
CREATE INDEX blocks_by_base ON blocks (base, kind);
CREATE INDEX refs_by_target ON refs (target, key);
CREATE INDEX files_with_diagnostics ON files (path) WHERE diagnostics <> '';
CREATE INDEX files_with_guidelines ON files (path, hash) WHERE guideline_count > 0;
`;
