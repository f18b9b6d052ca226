/** Values that look like a key, whatever the name of their variable. */
export const keyPattern =
  /^(?=[\s\S]*\d)(?:(?:sk|pk|rk|whsec|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abeoprs]|xapp|npm|pypi|hf|gsk|xai|r8|dckr_pat|shpat|lin_api|ntn|tvly|pplx|dop_v1|figd|sntrys|SG)[-_.]\S{16,}|(?:AKIA|ASIA|AIza|ya29)\S{12,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]+)$/;
