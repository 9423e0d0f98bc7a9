// The certificate of the API's server: reads its files and its expiry. Without one the server speaks plain HTTP. The
// configuration decides whether plain HTTP is allowed, and admission checks each request.

import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { InputError, messageOf } from '../../errors.ts'
import { maxFileBytes, readRegularFileSync } from '../../regular-file.ts'

/** Files in PEM form; null where TLS ends elsewhere. */
export type TlsFiles = { readonly cert: string | null; readonly key: string | null }

/** The files, and whether HTTP/2 is offered. */
export type TlsSettings = TlsFiles & { readonly http2: boolean }

/** A chain and its key in PEM form. */
export type Certificate = { readonly cert: Buffer; readonly key: Buffer }

/** Certificate and key; undefined where there are none. @throws InputError when a file can't be read or is no PEM */
export const tlsOptions = ({ cert, key }: TlsFiles): Certificate | undefined => {
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
    return readRegularFileSync(path, maxFileBytes.pem)
  } catch (cause) {
    throw new InputError(`${name} is ${path}, which can't be read: ${messageOf(cause)}`, { cause })
  }
}

/** When the served certificate expires, ms since the epoch; undefined without one. */
export const createCertificateExpiry = (
  served: () => Certificate | undefined,
): (() => number | undefined) => {
  let known: { readonly of: Certificate; readonly expiresAt: number } | undefined
  return () => {
    const certificate = served()
    if (!certificate) return undefined
    // The first one of the chain is the server's own.
    if (known?.of !== certificate)
      known = { of: certificate, expiresAt: new X509Certificate(certificate.cert).validToDate.getTime() }
    return known.expiresAt
  }
}
