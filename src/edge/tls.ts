// How the API's server speaks: HTTPS with the certificate it is given, else plain HTTP. Whether plain HTTP is allowed at
// all is the configuration's rule, and what must have come over HTTPS is judged per request.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { createSecureContext } from 'node:tls'
import { InputError, messageOf } from '../errors.ts'

/** Files in PEM form; null where TLS ends elsewhere. */
export type TlsFiles = { readonly cert: string | null; readonly key: string | null }

/** Certificate and key; undefined where there are none. @throws InputError when a file can't be read or is no PEM */
export const tlsOptions = ({ cert, key }: TlsFiles): { cert: Buffer; key: Buffer } | undefined => {
  if (cert === null || key === null) return undefined
  const pair = { cert: pemOf('server.tls.cert', cert), key: pemOf('server.tls.key', key) }
  try {
    createSecureContext(pair)
  } catch (cause) {
    throw new InputError(
      `server.tls.cert and server.tls.key can't be used: ${cert} and ${key} are no certificate and key in PEM form that belong together (${messageOf(cause)})`,
      { cause },
    )
  }
  return pair
}

const pemOf = (name: string, path: string): Buffer => {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new InputError(`${name} is ${path}, which can't be read: ${messageOf(cause)}`, { cause })
  }
}

/** A server of TLS keeps what it was given last, at the start or by `setSecureContext`; its types do not tell. */
type WithCertificate = { readonly cert?: string | Buffer }

/** When the certificate that a server serves now expires, ms since the epoch; undefined for one without TLS. */
export const createCertificateExpiry = (server: Server): (() => number | undefined) => {
  let known: { cert: string | Buffer; expiresAt: number } | undefined
  return () => {
    const { cert } = server as Server & WithCertificate
    if (cert === undefined) return undefined
    // The first one of the chain is the server's own.
    if (known?.cert !== cert) known = { cert, expiresAt: new X509Certificate(cert).validToDate.getTime() }
    return known.expiresAt
  }
}
