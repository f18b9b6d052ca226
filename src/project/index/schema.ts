/** Marks a database as an index of kit: "kit1" in ASCII. */
export const applicationId = 0x6b697431;

/** Raise it with every change of the tables or of what adapters make of a file. */
export const schemaVersion = 5;

/**
 * Tables of the index. Everything in it can be made again from the files of the project.
 *
 * - `tree`: the folders as the last pass saw them (`tree-store.ts`).
 * - `links`: links inside the root (`aliases.ts`).
 * - `files`: sources. `guidelines` and `diagnostics` are JSON with a checksum over both.
 * - `blocks`: `key` as in `block-key.ts`; the id follows from `kind`, `base` and `n` (`block-id.ts`);
 *   the other columns as in `stored-block.ts`.
 * - `refs`: what blocks name (`refs.ts`).
 * - `features`: the files that hold documents of a feature.
 * - `classes`: how many blocks there are of each class.
 * - `dates`: first and last commit of a file, in seconds since 1970, and the name of its first author.
 * - `search`: the words of the blocks; its text is not kept twice (contentless).
 */
export const tables = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE tree (id INTEGER PRIMARY KEY, names TEXT NOT NULL, stamps BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE links (path TEXT PRIMARY KEY, kind TEXT NOT NULL, target TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL, hash TEXT NOT NULL, guidelines TEXT NOT NULL,
  guideline_count INTEGER NOT NULL, diagnostics TEXT NOT NULL, checksum INTEGER NOT NULL
);
CREATE TABLE blocks (
  key INTEGER PRIMARY KEY, file INTEGER NOT NULL, position INTEGER NOT NULL, kind INTEGER NOT NULL,
  base TEXT NOT NULL, n INTEGER NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL, data TEXT NOT NULL,
  checksum INTEGER NOT NULL, edges TEXT NOT NULL, edges_checksum INTEGER NOT NULL
);
CREATE TABLE refs (target TEXT NOT NULL, key INTEGER NOT NULL);
CREATE TABLE features (feature TEXT NOT NULL, file INTEGER NOT NULL);
CREATE TABLE classes (code INTEGER PRIMARY KEY, blocks INTEGER NOT NULL);
CREATE TABLE dates (
  path TEXT PRIMARY KEY, first INTEGER, last INTEGER NOT NULL, hash TEXT NOT NULL, author TEXT
) WITHOUT ROWID;
CREATE VIRTUAL TABLE search USING fts5(
  title, body, tags, marks, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2'
);
`;

/** Made after the first fill: sorting once is cheaper than keeping order all along. */
export const indexes = `
CREATE UNIQUE INDEX files_by_path ON files (path);
CREATE INDEX files_with_diagnostics ON files (path) WHERE diagnostics <> '';
CREATE INDEX files_with_guidelines ON files (path, hash, checksum) WHERE guideline_count > 0;
CREATE INDEX blocks_by_file ON blocks (file, position);
CREATE INDEX blocks_by_base ON blocks (base, kind);
CREATE INDEX refs_by_target ON refs (target, key);
CREATE INDEX features_by_name ON features (feature, file);
CREATE INDEX features_by_file ON features (file);
`;
