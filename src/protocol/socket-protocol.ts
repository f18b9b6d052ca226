/** The subprotocol that the server speaks. */
export const socketProtocol = "kit";

/** Prefix of a second subprotocol, followed by the API key as base64url: browsers cannot send headers. */
export const bearerProtocolPrefix = "kit.bearer.";
