import { backendContract } from "./contract.suite.ts";

backendContract({ name: "typed", create: () => "typed" });
