/** `kit/contracts`: what a backend, an engine, a sandbox and a store of your own implement. */

export type {
  AgentBackend,
  BackendCall,
  BackendCapabilities,
  BackendChoice,
  BackendMessage,
  BackendOperation,
  BackendQuestion,
  BackendState,
  BackendTool,
  BackendTurn,
  OwnTool,
  TurnRequest,
} from "../backends/contract.ts";
export type {
  AdmitRequest,
  DeliveryRecords,
  DispatchFilter,
  Engine,
  EngineHandlers,
  InputEnd,
  LinePlace,
  Page,
  RunContext,
  RunEventBody,
  RunFilter,
  RunReceipt,
  RunRequest,
  RunSignal,
  WaitOptions,
  WorkContext,
} from "../engine/contract.ts";
export type { EventLog, EventReadOptions, EventSubscription } from "../engine/event-log-contract.ts";
export type {
  CommandAccess,
  CommandLimits,
  ExecRequest,
  ExecResult,
  IsolationMode,
  IsolationOptions,
  Sandbox,
  SandboxFactory,
  SandboxIsolation,
  SandboxOwner,
} from "../sandboxes/contract.ts";
export type { AppendRequest, SessionStore } from "../stores/contract.ts";
