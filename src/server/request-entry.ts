/** One answered request, for a log. Holds no query and no body, since both may be private. */
export interface RequestEntry {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly duration_ms: number;
  /** The id of the principal whose key the request carried; absent where nobody is asked for one. */
  readonly principal?: string;
  /** Of the request's `traceparent`. */
  readonly trace_id?: string;
  readonly span_id?: string;
}
