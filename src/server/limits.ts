/** The limits of one request. Times are in milliseconds, sizes in bytes. */
export interface ServerLimits {
  readonly bodyBytes: number;
  /** Levels of nested arrays and objects. */
  readonly jsonDepth: number;
  /** The size of all headers of one request. */
  readonly headerBytes: number;
  readonly headerCount: number;
  /** Pipelined requests of one connection: sent before the reply to an earlier one has ended. */
  readonly pipelinedRequests: number;
  /** From the first byte of a connection or request to the end of its headers. */
  readonly headersTimeoutMs: number;
  /** From the first byte of a request to the end of its body. */
  readonly requestTimeoutMs: number;
  /** How long a kept-alive connection can wait for its next request. */
  readonly keepAliveTimeoutMs: number;
  /** How long a connection can be idle: it neither sends nor reads. */
  readonly idleTimeoutMs: number;
  /** The time limit of `auth` and `authorize`; after it, the request is refused. */
  readonly hookTimeoutMs: number;
  /** How long an answer of `authorize` is valid for an event stream; the next event after it asks again. */
  readonly permissionMs: number;
  /** An idle event stream or WebSocket sends a heartbeat after this time. */
  readonly heartbeatMs: number;
  /**
   * The server ends an event stream that its reader can resume after this time, before a platform cuts it; undefined: no
   * limit.
   */
  readonly streamMs?: number;
  /** Event streams that can be open at once. */
  readonly eventStreams: number;
  /** How many of them one principal may have; undefined: as many as are left for others. */
  readonly eventStreamsPerPrincipal?: number;
  /** The size of unread events of one client; beyond it, the server disconnects the client. */
  readonly unreadBytes: number;
  readonly webSockets: number;
  /** How many of them one principal may have; undefined: as many as are left for others. */
  readonly webSocketsPerPrincipal?: number;
  /** Running prompts, and approvals in progress, on one WebSocket. */
  readonly webSocketPrompts: number;
  /** The size of one message on a WebSocket. */
  readonly webSocketMessageBytes: number;
  /** How long `close()` waits for running replies. */
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
