/** The `telemetry` table: what spans hold, and who is told of them. */
export interface TelemetryConfig {
  /** What models are asked and say, arguments and results of tools; default false. */
  readonly capture_content?: boolean;
  /** Names of OpenInference beside those of OpenTelemetry, for Phoenix before 15.10 and Arize; default false. */
  readonly open_inference?: boolean;
  /** Gives commands of agents `TRACEPARENT` and `TRACESTATE` in their environment; default false. */
  readonly trace_commands?: boolean;
}
