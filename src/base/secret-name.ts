/** Files of variables: `.env`, `.env.local`, `.envrc`; what shows others which there are is none. */
const variables = /(?:^|\/)\.env(?:rc|\.[^/]+)?$/;
const sample = /\.(?:example|sample|template|dist|defaults?)$/;
/** Files in which programs keep keys and passwords. */
const keys =
  /(?:^|\/)(?:\.npmrc|\.netrc|\.pypirc|\.pgpass|\.git-credentials|\.dockercfg|id_(?:rsa|dsa|ecdsa|ed25519)|credentials\.json|service-account[^/]*\.json|[^/]+\.(?:pem|key|p12|pfx|jks|keystore))$/;

/** Whether a path names a file of variables that may be secret: `.env` and what begins so. In lower case. */
export function isVariablesName(path: string): boolean {
  return variables.test(path) && !sample.test(path);
}

/** Whether the name of a file says that it holds secrets, so that it is not handed to another computer. */
export function isSecretName(path: string): boolean {
  const name = path.toLowerCase();
  return isVariablesName(name) || keys.test(name);
}
