export type PostgresUrl = `postgres://${string}` | `postgresql://${string}`;

/**
 * Whether a text is the address of a Postgres database: `postgres://user:password@host:5432/name`. It is not where a `/`, `?` or `#` of
 * the password is not percent-encoded: parsers take the user for the host then, and the password for a name that is shown.
 */
export function isPostgresUrl(text: string): text is PostgresUrl {
  if (!/^postgres(ql)?:\/\//.test(text)) return false;
  const url = URL.parse(text);
  if (url === null || url.pathname.includes("@") || url.hash !== "") return false;
  return !(url.pathname === "" && url.username === "" && url.search.includes("@"));
}
