/** The limits of one request. Times are in milliseconds, sizes in bytes. */
export interface ServerLimits {
  readonly bodyBytes: number;
  /** Arrays and objects inside each other. */
  readonly jsonDepth: number;
  /** All headers of one request together. */
  readonly headerBytes: number;
  readonly headerCount: number;
  /** Requests of one connection that are sent while earlier ones wait, answered or not. */
  readonly pipelinedRequests: number;
  /** From the first byte of a connection or request to the end of its headers. */
  readonly headersTimeoutMs: number;
  /** From the first byte of a request to the end of its body. */
  readonly requestTimeoutMs: number;
  /** How long a kept-alive connection may wait for its next request. */
  readonly keepAliveTimeoutMs: number;
  /** How long a connection may neither send nor read. */
  readonly idleTimeoutMs: number;
  /** How long `auth` and `authorize` may take to answer; then the request is refused. */
  readonly hookTimeoutMs: number;
  /** For how long a stream of events goes on before `authorize` is asked again, with its next event. */
  readonly permissionMs: number;
  /** A stream of events or a WebSocket that says nothing for this long says that it lives. */
  readonly heartbeatMs: number;
  /**
   * A stream of events that its reader can take up again ends after this long, before a platform cuts it; undefined: it
   * goes on.
   */
  readonly streamMs?: number;
  /** Streams of events that may be open at once. */
  readonly eventStreams: number;
  /** How many of them one principal may have; undefined: as many as are left for others. */
  readonly eventStreamsPerPrincipal?: number;
  /** Unread events of one client; past this, the client is disconnected. */
  readonly unreadBytes: number;
  readonly webSockets: number;
  /** How many of them one principal may have; undefined: as many as are left for others. */
  readonly webSocketsPerPrincipal?: number;
  /** Prompts under way on one WebSocket, and approvals that are being looked at. */
  readonly webSocketPrompts: number;
  /** The size of one message on a WebSocket. */
  readonly webSocketMessageBytes: number;
  /** How long `close()` waits for replies under way. */
  readonly closeGraceMs: number;
}

export const defaultLimits: ServerLimits = {
  bodyBytes: 1_048_576,
  jsonDepth: 64,
  headerBytes: 16_384,
  headerCount: 100,
  pipelinedRequests: 32,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 5_000,
  idleTimeoutMs: 60_000,
  hookTimeoutMs: 10_000,
  permissionMs: 10_000,
  heartbeatMs: 15_000,
  eventStreams: 10_000,
  unreadBytes: 4_194_304,
  webSockets: 10_000,
  webSocketPrompts: 100,
  webSocketMessageBytes: 1_048_576,
  closeGraceMs: 5_000,
};
