/**
 * The most that a server may cost kit, however it behaves. Sizes in bytes or characters as named; a server that
 * goes past a limit on the wire is cut off, one that offers too much loses what is too much.
 */
export const limits = {
  /** One JSON-RPC message. */
  messageBytes: 10_485_760,
  /**
   * Output of a process beside its answers, on either of its outputs, and what one stream of events says in
   * all. Reading a line costs as much as its bytes, or these.
   */
  flood: { burstBytes: 16_777_216, bytesPerSecond: 2_097_152, lineBytes: 4_096 },
  /** Bytes that a piece of an HTTP body counts at least within the limit for a flood. */
  httpPieceBytes: 128,
  /** Reading of a process's output: bytes in one turn of the event loop; reads in a time before kit waits for more at once. */
  reads: { bytes: 16_384, count: 100, ms: 100 },
  /** Bytes that wait for a process that does not read its input. */
  unsentBytes: 67_108_864,
  /** Lists of tools: pages, tools and characters that are read before the filter. */
  pages: 100,
  listedTools: 10_000,
  listedChars: 16_777_216,
  /** Tools of one server that are kept. */
  tools: 2_000,
  /** Definitions of all tools of one server together. */
  catalogueChars: 4_194_304,
  /** Tools of one server in direct mode; some providers take 128 in a request. */
  directTools: 128,
  toolNameChars: 128,
  descriptionChars: 4_000,
  schemaChars: 50_000,
  schemaDepth: 40,
  /** Interim answers (1xx) to one request over HTTP. */
  interimAnswers: 100,
  /** Times in a row that a stream of notifications is opened again. */
  reconnects: 8,
  /** Complaints of one server that are kept. */
  remarks: 20,
  errorChars: 500,
  stderrChars: 2_000,
  resultParts: 200,
  resultImages: 20,
  /** One image: what the strictest provider takes. */
  imageBytes: 5_242_880,
} as const;

/** Times in milliseconds. */
export const times = {
  connect: 30_000,
  list: 30_000,
  call: 120_000,
  /** How long an operation waits for a server's tools before it goes on without them. */
  patience: 30_000,
  /** The same for a server that failed last time. */
  shortPatience: 3_000,
  /** A server that let a call time out is asked whether it is there, and has this long to answer. */
  lifeSign: 5_000,
  /** A call waits for a reconnect that is due within this time; else it says when to come back. */
  reconnectWait: 5_000,
  firstBackoff: 1_000,
  maxBackoff: 60_000,
  /** A longer pause is not kept, whatever a server asks for. */
  maxRetryAfter: 300_000,
  /** The longest pause before the stream of a call that is waited for is opened again. */
  maxCallBackoff: 5_000,
  /** A stream that was open for so long was not a failure. */
  steadyStream: 30_000,
  /** Between the polite and the firm way of ending a process. */
  grace: 1_000,
} as const;
