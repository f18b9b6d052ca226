/** The `oauth` table of a server, with its variables replaced. */
export interface OAuthSettings {
  /** Who logs in: a person, by default, or the program itself. */
  readonly grant?: "authorization_code" | "client_credentials" | undefined;
  readonly issuer?: string | undefined;
  readonly client_id?: string | undefined;
  readonly client_secret?: string | undefined;
  readonly scope?: string | undefined;
  readonly callback_port?: number | undefined;
}
