/** The subprotocol that the server speaks. */
export const socketProtocol = "kit";

/** Offered beside it by a browser, which can send no headers: this prefix and the API key as base64url. */
export const bearerProtocolPrefix = "kit.bearer.";
