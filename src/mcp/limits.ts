/**
 * Limits of what a server can cost kit, however it behaves. A server that exceeds a limit of the connection is
 * disconnected; if it offers too many or too large tools, the excess is dropped.
 */
export const limits = {
  /** One JSON-RPC message. */
  messageBytes: 10_485_760,
  /**
   * The rate limit for a process's output other than its answers, and for each stream of events. Each line counts as
   * `lineBytes` at least.
   */
  flood: { burstBytes: 16_777_216, bytesPerSecond: 2_097_152, lineBytes: 4_096 },
  /** Bytes that a piece of an HTTP body counts at least toward `flood`. */
  httpPieceBytes: 128,
  /** Reading a process's output: bytes per turn of the event loop; after `count` reads within `ms`, kit waits to read more at once. */
  reads: { bytes: 16_384, count: 100, ms: 100 },
  /** Bytes buffered for a process that does not read its input. */
  unsentBytes: 67_108_864,
  /** Lists of tools: pages, tools and characters read before filtering. */
  pages: 100,
  listedTools: 10_000,
  listedChars: 16_777_216,
  /** Tools of one server after filtering. */
  tools: 2_000,
  /** Characters of all tool definitions of one server together. */
  catalogueChars: 4_194_304,
  /** Tools of one server in direct mode; some providers accept 128 per request. */
  directTools: 128,
  toolNameChars: 128,
  descriptionChars: 4_000,
  schemaChars: 50_000,
  schemaDepth: 40,
  /** The body of an answer of an authorization server. */
  authorizationBytes: 131_072,
  /** Interim answers (1xx) to one request over HTTP. */
  interimAnswers: 100,
  /** Questions to a person, and rounds of input, of one call. */
  questions: 20,
  questionChars: 4_000,
  /** Consecutive attempts to reopen a stream of notifications. */
  reconnects: 8,
  /** Remarks about one server. */
  remarks: 20,
  errorChars: 500,
  stderrChars: 2_000,
  resultParts: 200,
  resultImages: 20,
  /** The image size that the strictest provider accepts. */
  imageBytes: 5_242_880,
} as const;

/** Times in milliseconds. */
export const times = {
  connect: 30_000,
  list: 30_000,
  call: 120_000,
  /** How long an operation waits for a server's tools before it continues without them. */
  patience: 30_000,
  /** The same for a server that failed the last time. */
  shortPatience: 3_000,
  /** After a call timed out, the time in which the server must answer a check. */
  lifeSign: 5_000,
  /** A call waits for a reconnect due within this time; otherwise its error says when to try again. */
  reconnectWait: 5_000,
  firstBackoff: 1_000,
  maxBackoff: 60_000,
  /** The longest pause that a server can ask for. */
  maxRetryAfter: 300_000,
  /** The pause before a call is made again for a server that asks for that without a question. */
  inputPause: 250,
  /** The longest pause before the stream of a waiting call is reopened. */
  maxCallBackoff: 5_000,
  /** A stream that was open this long does not count as a failure. */
  steadyStream: 30_000,
  /** A request to an authorization server. */
  authorization: 20_000,
  /** Access tokens that end within this time are renewed before a request. */
  renewal: 30_000,
  /** How long a person may take to log in. */
  login: 300_000,
  /** The same for a login that a person begins at kit's server: some have to find a password first. */
  browserLogin: 600_000,
  /** The time between asking a process to end and killing it. */
  grace: 1_000,
} as const;
