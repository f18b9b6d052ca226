export type PostgresUrl = `postgres://${string}` | `postgresql://${string}`;

/** Whether a text is the address of a Postgres database: `postgres://user:password@host:5432/name`. */
export function isPostgresUrl(text: string): text is PostgresUrl {
  return /^postgres(ql)?:\/\//.test(text) && URL.canParse(text);
}
