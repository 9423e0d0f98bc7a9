// How the API's server speaks: HTTPS with the certificate it is given, else plain HTTP. Whether plain HTTP is allowed at
// all is the configuration's rule, and what must have come over HTTPS is judged per request.

import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { InputError, messageOf } from '../errors.ts'

/** Files in PEM form; null where TLS ends elsewhere. */
export type TlsFiles = { readonly cert: string | null; readonly key: string | null }

/** Options for Fastify's server. @throws InputError when a file can't be read or is no PEM */
export const serverOptions = ({ cert, key }: TlsFiles, requestTimeoutMs: number) => {
  const http = {
    // A missing host header is answered by us, in JSON, instead of by Node with an empty body.
    requireHostHeader: false,
    // Node looks for requests that take too long only this often, every 30 s unless told otherwise.
    connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
  }
  if (cert === null || key === null) return { http }
  const pair = { cert: pemOf('server.tls.cert', cert), key: pemOf('server.tls.key', key) }
  try {
    createSecureContext(pair)
  } catch (cause) {
    throw new InputError(
      `server.tls.cert and server.tls.key can't be used: ${cert} and ${key} are no certificate and key in PEM form that belong together (${messageOf(cause)})`,
      { cause },
    )
  }
  // Fastify types one server for both schemes; what is built from here on does not depend on which.
  return { https: { ...http, ...pair } } as unknown as { http: typeof http }
}

const pemOf = (name: string, path: string): Buffer => {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new InputError(`${name} is ${path}, which can't be read: ${messageOf(cause)}`, { cause })
  }
}
