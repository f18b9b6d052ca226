/** The part of `@daytona/sdk` 0.216.0 that kit uses, declared here so that the package need not be installed. */
export interface DaytonaSdk {
  readonly Daytona: new (config: DaytonaConfig) => DaytonaClient;
  readonly DaytonaError: abstract new (...args: never) => DaytonaFailure;
}

export interface DaytonaFailure extends Error {
  /** `undefined` if there was no response. */
  readonly statusCode?: number;
}

interface DaytonaConfig {
  readonly apiKey?: string;
  readonly apiUrl?: string;
  readonly target?: string;
  readonly requestTimeoutMs?: number;
  readonly useDeprecatedPolling?: boolean;
}

export interface DaytonaClient {
  create(params: DaytonaParams, options: { readonly timeout: number }): Promise<DaytonaMachine>;
  get(id: string): Promise<DaytonaMachine>;
  list(query: { readonly labels: Record<string, string> }): AsyncIterable<DaytonaMachine>;
}

export interface DaytonaParams {
  readonly snapshot?: string;
  readonly image?: string;
  readonly labels: Record<string, string>;
  readonly envVars: Record<string, string>;
  /** Minutes. */
  readonly autoStopInterval: number;
  readonly autoDeleteInterval: number;
  readonly networkBlockAll?: boolean;
  readonly domainAllowList?: string;
}

export interface DaytonaMachine {
  readonly id: string;
  readonly state?: string;
  readonly labels: Record<string, string>;
  readonly createdAt?: string;
  readonly fs: {
    uploadFiles(files: readonly { readonly source: Buffer; readonly destination: string }[]): Promise<void>;
  };
  readonly process: DaytonaProcess;
  start(timeoutSeconds: number): Promise<void>;
  stop(timeoutSeconds: number): Promise<void>;
  delete(timeoutSeconds: number): Promise<void>;
  refreshActivity(): Promise<void>;
}

interface DaytonaProcess {
  executeCommand(
    command: string,
    cwd: string | undefined,
    env: Record<string, string> | undefined,
    timeoutSeconds: number,
  ): Promise<{ readonly exitCode: number; readonly result: string }>;
  createSession(id: string): Promise<void>;
  deleteSession(id: string): Promise<void>;
  executeSessionCommand(
    id: string,
    request: { readonly command: string; readonly runAsync: true },
  ): Promise<{ readonly cmdId?: string }>;
  getSessionCommandLogs(
    id: string,
    commandId: string,
    onStdout: (text: string) => void,
    onStderr: (text: string) => void,
  ): Promise<void>;
  getSessionCommandLogs(
    id: string,
    commandId: string,
  ): Promise<{ readonly stdout?: string; readonly stderr?: string }>;
  getSessionCommand(id: string, commandId: string): Promise<{ readonly exitCode?: number }>;
}
