// Warns before the API's certificate expires: a log line a day, one when it has expired, and a detail of /readyz.

import { isoOf, utcDayMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Log } from './log.ts'

export type CertificateWatch = ReturnType<typeof watchCertificate>

const warnForMs = 14 * utcDayMs
const urgentForMs = 2 * utcDayMs
const checkEveryMs = 1_000

/** How near its end a certificate is. */
export const renewalOf = (expiresAt: number, now: number): 'valid' | 'due' | 'urgent' | 'expired' => {
  const leftMs = expiresAt - now
  if (leftMs > warnForMs) return 'valid'
  if (leftMs > urgentForMs) return 'due'
  return leftMs > 0 ? 'urgent' : 'expired'
}

/** @param expiresAt of the certificate that is served, ms since the epoch; undefined without one */
export const watchCertificate = (expiresAt: () => number | undefined, clock: Clock, log: Log) => {
  let logged = { at: Number.NEGATIVE_INFINITY, expired: false }
  /** For /readyz; undefined where the API serves no certificate. */
  const detail = (): string | undefined => {
    const at = expiresAt()
    return at === undefined ? undefined : `${at <= clock.now() ? 'expired' : 'expires'} ${isoOf(at)}`
  }
  const check = (): void => {
    const at = expiresAt()
    const now = clock.now()
    if (at === undefined || renewalOf(at, now) === 'valid') return
    const expired = renewalOf(at, now) === 'expired'
    if (expired === logged.expired && Math.abs(now - logged.at) < utcDayMs) return
    logged = { at: now, expired }
    const line = {
      expiresAt: isoOf(at),
      next: 'renew it and replace server.tls.cert and server.tls.key; docs/runbook.md#abohawacertificateexpires',
    }
    if (expired) log.error(line, 'certificate expired')
    else log.warn(line, 'certificate expires soon')
  }
  check()
  const timer = setInterval(check, checkEveryMs).unref()
  return { detail, close: () => clearInterval(timer) }
}
