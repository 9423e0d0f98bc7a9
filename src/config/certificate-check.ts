// Faults of a certificate that can be served: chain, times, names, key mode. A start serves it anyway; `config check` and a
// renewal refuse grave ones.

import { X509Certificate } from 'node:crypto'
import { statSync } from 'node:fs'
import { isIP } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { getCACertificates } from 'node:tls'
import { isoOf } from '../common/calendar.ts'
import { InputError } from '../common/errors.ts'
import { hostOf } from '../common/outside-address.ts'
import { safeText } from '../common/outside-text.ts'
import type { Config } from './schema.ts'
import { certificateOf, chainOf } from './tls.ts'

/** A sentence whose subject is the certificate, and what to do. Clients refuse it where it is grave. */
export type CertificateFault = { readonly isGrave: boolean; readonly detail: string; readonly fix: string }

/**
 * The grave ones first; none where HTTPS ends elsewhere.
 * @param host by which consumers reach the gateway, where another one is known than server.publicUrl
 * @throws InputError when a file can't be used
 */
export const certificateFaults = async (
  server: Pick<Config['server'], 'tls' | 'publicUrl' | 'trustedProxies'>,
  now: number,
  host?: string,
): Promise<readonly CertificateFault[]> => {
  const { cert, key } = server.tls
  const certificate = certificateOf(server.tls)
  if (!certificate || cert === null || key === null) return []
  const chain = chainOf(certificate.cert)
  const found = [
    ...chain.flatMap((each, i) => timeFaults(each, i, now, cert)),
    ...(await chainFaults(chain, cert)),
    ...nameFaults(chain[0], server, host),
    ...modeFaults(key),
  ]
  return found.toSorted((one, other) => Number(other.isGrave) - Number(one.isGrave))
}

/** Returns the faults that are not grave. @throws InputError also for a grave one */
export const requireServable = async (
  server: Config['server'],
  now: number,
): Promise<readonly CertificateFault[]> => {
  const faults = await certificateFaults(server, now)
  if (faults[0]?.isGrave)
    throw new InputError(`server.tls.cert is ${server.tls.cert}, which clients refuse: ${faults[0].detail}`)
  return faults
}

const grave = (detail: string, fix: string): CertificateFault => ({ isGrave: true, detail, fix })
const light = (detail: string, fix: string): CertificateFault => ({ isGrave: false, detail, fix })

const nameOf = ({ subject }: X509Certificate): string =>
  safeText(/^CN=(.*)$/m.exec(subject ?? '')?.[1] ?? subject ?? '', 80)
const dayOf = (date: Date): string => isoOf(date.getTime()).slice(0, 10)

const timeFaults = (
  one: X509Certificate,
  place: number,
  now: number,
  file: string,
): readonly CertificateFault[] => {
  const subject = place === 0 ? 'it' : `certificate ${place + 1} of its chain (${nameOf(one)})`
  if (now < one.validFromDate.getTime())
    return [
      grave(
        `${subject} is valid only from ${dayOf(one.validFromDate)} on`,
        'Set the clock of this machine, or wait.',
      ),
    ]
  return now < one.validToDate.getTime()
    ? []
    : [
        grave(
          `${subject} expired on ${dayOf(one.validToDate)}`,
          place === 0 ? `Renew ${file} and its key.` : `Put the present chain of its authority into ${file}.`,
        ),
      ]
}

const hasIssued = (issuer: X509Certificate, one: X509Certificate): boolean => {
  try {
    return issuer !== one && one.checkIssued(issuer) && one.verify(issuer.publicKey)
  } catch {
    // A key of a kind that can't have signed it.
    return false
  }
}

const chainFaults = async (
  chain: ReturnType<typeof chainOf>,
  file: string,
): Promise<readonly CertificateFault[]> => {
  const stranger = chain.findIndex((each, i) => i > 0 && !chain.some(other => hasIssued(each, other)))
  let last = chain[0]
  for (const _ of chain) {
    const issuer = chain.find(each => hasIssued(each, last))
    if (!issuer) break
    last = issuer
  }
  const isWhole = last.checkIssued(last) || (await isOfKnownRoot(last))
  const fix = `Put the server's certificate and then its authority's certificates into ${file}, each after the one that it issued.`
  if (stranger !== -1) {
    const what = `certificate ${stranger + 1} of its chain (${nameOf(chain[stranger] as X509Certificate)}) has issued none of the others`
    return [isWhole ? light(what, fix) : grave(`${what}, and the issuer of ${nameOf(last)} is missing`, fix)]
  }
  return isWhole
    ? []
    : [
        light(
          `its chain ends with ${nameOf(last)}, whose issuer is no authority that Node.js knows`,
          `${fix} Where the authority is your own: NODE_EXTRA_CA_CERTS=ca.pem before the command.`,
        ),
      ]
}

// A renewal reads them beside the traffic.
const rootsInATurn = 16

const isOfKnownRoot = async (one: X509Certificate): Promise<boolean> => {
  for (const [i, pem] of getCACertificates('default').entries()) {
    if (i % rootsInATurn === 0) await nextTurn()
    if (hasIssued(new X509Certificate(pem), one)) return true
  }
  return false
}

const nameFaults = (
  own: X509Certificate,
  { publicUrl, trustedProxies }: Pick<Config['server'], 'publicUrl' | 'trustedProxies'>,
  given: string | undefined,
): readonly CertificateFault[] => {
  const host = given ?? (publicUrl?.startsWith('https:') ? hostOf(new URL(publicUrl)) : undefined)
  if (host === undefined || (isIP(host) ? own.checkIP(host) : own.checkHost(host)) !== undefined) return []
  const names = safeText(own.subjectAltName ?? own.subject, 200)
  const detail = `it is for ${names}, not for ${host}${given === undefined ? ' of server.publicUrl' : ''}`
  // A proxy in front has its own certificate, and may use another name.
  const isFromProxies = given === undefined && trustedProxies.length > 0
  return [(isFromProxies ? light : grave)(detail, `Get a certificate that names ${host}.`)]
}

const modeFaults = (key: string): readonly CertificateFault[] =>
  (statSync(key).mode & 0o007) === 0
    ? []
    : [light(`other users of this machine may open its key ${key}`, `Run chmod 600 ${key}.`)]
