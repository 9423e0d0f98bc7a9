// Checks of the proxies in front: which are trusted, and whether they report HTTPS.

import { isIP } from 'node:net'
import { Agent, request } from 'undici'
import { apiPrefix } from '../../common/endpoints.ts'
import { messageOf } from '../../common/errors.ts'
import { checkAddresses, checkedLookup, hostOf } from '../../common/outside-address.ts'
import type { Config } from '../../config/schema.ts'
import { type Finding, fail, ok, warn } from './check.ts'

const wideBits = 8

export const proxyFinding = ({ server }: Pick<Config, 'server'>): Finding => {
  const { trustedProxies, tls, host } = server
  const wide = trustedProxies.find(range => Number(range.split('/')[1] ?? 128) < wideBits)
  if (wide !== undefined)
    return fail(
      `server.trustedProxies has ${wide}: every client there can claim HTTPS and any address`,
      'Name the addresses of your own proxies in server.trustedProxies and nothing wider.',
    )
  if (trustedProxies.length > 0)
    return ok(
      `x-forwarded-proto of ${trustedProxies.join(', ')} is believed; other requests ${tls.cert === null ? 'count as plain HTTP and are 400' : 'need HTTPS'}`,
    )
  return tls.cert === null
    ? ok(`plain HTTP on ${host}, no proxy is trusted`)
    : ok('HTTPS straight from the gateway, no proxy is trusted')
}

/** Sends an unauthenticated request through the proxy: its answer distinguishes HTTPS from plain HTTP. */
export const urlFinding = async ({ doctor }: Pick<Config, 'doctor'>, url: string): Promise<Finding> => {
  const address = `${url.replace(/\/+$/, '')}${apiPrefix}`
  try {
    const target = new URL(address)
    if (isIP(hostOf(target)) !== 0) checkAddresses('it', [hostOf(target)], true)
    const dispatcher = new Agent({ pipelining: 0, connect: { lookup: checkedLookup('its name', true) } })
    const { statusCode, headers, body } = await request(address, {
      dispatcher,
      signal: AbortSignal.timeout(doctor.answerWithinMs),
    })
    const text = await body.text()
    const isHttps = url.startsWith('https:')
    if (!('x-ratelimit-limit' in headers))
      return !isHttps && statusCode >= 300 && statusCode < 400
        ? ok(`plain HTTP is redirected (${statusCode})`)
        : fail(
            `${address} answered ${statusCode}, and is no gateway of this product`,
            'Let the proxy pass /api/v1 on to server.host and server.port of the gateway.',
          )
    const isPlain = statusCode === 400 && text.includes('plain HTTP')
    if (isHttps && isPlain)
      return fail(
        'a request over HTTPS arrives as plain HTTP',
        'Let the proxy set x-forwarded-proto to https, and name its address in server.trustedProxies.',
      )
    if (!isHttps && !isPlain)
      return warn(
        'a key would be accepted over plain HTTP there',
        'Redirect plain HTTP to HTTPS at the proxy, and name the proxy in server.trustedProxies.',
      )
    return ok(isHttps ? 'HTTPS arrives as HTTPS' : 'plain HTTP is refused')
  } catch (error) {
    return fail(
      `no answer at ${address}: ${messageOf(error)}`,
      'Check the name, the certificate and the log of the proxy. Where the authority is your own, name its certificate: NODE_EXTRA_CA_CERTS=ca.pem before the command.',
    )
  }
}
