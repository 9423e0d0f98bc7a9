// Requests of commands to a running gateway: its address, one request, and its report or the reason for none.

import { isIP } from 'node:net'
import type { Command } from 'commander'
import type * as z from 'zod'
import { InputError, messageOf } from '../common/errors.ts'
import { checkAddresses, checkedLookup, hostOf } from '../common/outside-address.ts'
import { quoted, safeText } from '../common/outside-text.ts'
import { redactedUrl } from '../common/redacted-url.ts'
import { ConfigError, loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { Terminal } from './terminal.ts'
import { asUsage, UsageError } from './usage-error.ts'

export const addGatewayOption = (command: Command): Command =>
  command.option(
    '--gateway <url>',
    'ops URL of the gateway to query; it receives ops.token (default: from the configuration)',
  )

export type AskedGateway = {
  readonly address: string
  /** Its address without what is secret in it. */
  readonly opsUrl: string
  readonly token: string | null
  /** Whether `--gateway` named it: then a gateway that is not there is an error. */
  readonly isNamed: boolean
}

/**
 * The gateway that `--gateway` names, or else the configured one.
 * @throws UsageError, and ConfigError; with `--gateway` an invalid configuration is only a remark
 */
export const gatewayFor = (
  terminal: Terminal,
  gateway: string | undefined,
): { readonly config: Config; readonly asked: AskedGateway } => {
  checkGateway(gateway)
  const config = gateway === undefined ? terminal.config() : configBeside(terminal)
  const address = opsAddress(gateway, config)
  const isNamed = gateway !== undefined
  return { config, asked: { address, opsUrl: redactedUrl(address), token: config.ops.token, isNamed } }
}

/** The configuration, or without an invalid file only its variables: the gateway says if a token is missing. */
const configBeside = (terminal: Terminal): Config => {
  try {
    return terminal.config()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    terminal.remark('The configuration is invalid; --gateway is used anyway:')
    for (const { sentence } of error.faults) terminal.remark(`  ${sentence}`)
    return loadConfig({ files: [], env: terminal.env })
  }
}

/** @throws UsageError for what is no address, or one that is not allowed; names are checked when they are resolved */
export const checkGateway = (gateway: string | undefined, allowsRemote = true): void => {
  if (gateway === undefined) return
  const url = URL.parse(gateway)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError(
      `--gateway must be an address such as http://127.0.0.1:9090, got ${quoted(gateway, 60)}`,
    )
  const host = hostOf(url)
  if (isIP(host) !== 0)
    asUsage(() => checkAddresses(`--gateway ${redactedUrl(gateway)}`, [host], allowsRemote))
}

/** The given address, or the configured listener as seen from this machine. */
const opsAddress = (gateway: string | undefined, { ops: { host, port } }: Config): string => {
  if (gateway !== undefined) return gateway.replace(/\/+$/, '')
  const reached = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

type GatewayRequest = Pick<AskedGateway, 'address' | 'token'> & {
  readonly path: string
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly body?: object | undefined
  readonly timeoutMs?: number
  /** Whether its name may lead out of this machine and private networks; it may if not given. */
  readonly allowsRemote?: boolean
}

const queryTimeoutMs = 10_000

/**
 * The report of the gateway, or without one what the store knows: then `opsUrl` is null, and a remark says so.
 * @param known what that is, for the remark, @param read reads it @throws InputError, and what `read` throws
 */
export const reportOf = async <Report>(
  terminal: Terminal,
  asked: AskedGateway,
  path: string,
  readSchema: () => Promise<z.ZodType<Report>>,
  known: string,
  read: () => Promise<Report>,
): Promise<{
  readonly report: Report
  readonly opsUrl: string | null
  readonly remark: string | undefined
}> => {
  const { opsUrl } = asked
  const found = await queryGateway({ ...asked, path }, readSchema)
  if ('report' in found) return { report: found.report, opsUrl, remark: undefined }
  // Throws for an invalid file: no command uses the default store instead of the configured one.
  terminal.config()
  const remark = `No gateway answered at ${opsUrl} (${found.unavailable}): this is ${known}.`
  return { report: await read(), opsUrl: null, remark }
}

/** One request, whatever the answer. Rejects where none comes. */
export const askGateway = async (asked: GatewayRequest): Promise<{ status: number; text: string }> => {
  const {
    address,
    token,
    path,
    method = 'GET',
    body,
    timeoutMs = queryTimeoutMs,
    allowsRemote = true,
  } = asked
  // undici's request instead of fetch, which refuses some ports; imported here for a fast start.
  const { Agent, request } = await import('undici')
  const response = await request(`${address}${path}`, {
    // Connections go only to allowed addresses, and end with their response.
    dispatcher: new Agent({ pipelining: 0, connect: { lookup: checkedLookup('its name', allowsRemote) } }),
    method,
    signal: AbortSignal.timeout(timeoutMs),
    headers: {
      authorization: token === null ? undefined : `Bearer ${token}`,
      'content-type': body && 'application/json',
    },
    body: body ? JSON.stringify(body) : null,
  })
  return { status: response.statusCode, text: await response.body.text() }
}

/**
 * The gateway's report, or why there is none.
 * @throws InputError when the gateway refuses the request, and when the address that `--gateway` named has none
 */
export const queryGateway = async <Report>(
  query: GatewayRequest & Pick<AskedGateway, 'isNamed'>,
  readSchema: () => Promise<z.ZodType<Report>>,
): Promise<{ report: Report } | { unavailable: string }> => {
  const { address, isNamed } = query
  const where = redactedUrl(address)
  const unavailable = (reason: string): { unavailable: string } => {
    if (isNamed) throw new InputError(`no gateway answered at ${where} (--gateway): ${reason}`)
    return { unavailable: reason }
  }
  const answer = await askGateway(query).catch(connectionFault)
  if (typeof answer === 'string') return unavailable(answer)
  const { status } = answer
  const body = parsed(answer.text)
  const report = (await readSchema()).safeParse(body).data
  if (report !== undefined) return { report }
  const refusal = body instanceof Object && 'error' in body ? body.error : undefined
  if (typeof refusal === 'string') {
    if (status === 400) throw new InputError(refusal)
    if (status === 401 || status === 403 || status === 409) {
      const fix = '; set ops.token (ABOHAWA_OPS__TOKEN) to the token that this gateway runs with'
      throw new InputError(`the gateway at ${where} refused: ${refusal}${status === 401 ? fix : ''}`)
    }
    // Of the gateway itself, such as that it is busy; a path that it does not know is of another version.
    if (status !== 404) return unavailable(`it answered ${status}: ${safeText(refusal, 200)}`)
  }
  return unavailable(`it answered ${status}, and is no gateway of this version`)
}

/** Why a request got no answer; OpenSSL's own words for a listener without TLS name its source files. */
const connectionFault = (error: unknown): string =>
  error instanceof Error && 'code' in error && error.code === 'ERR_SSL_WRONG_VERSION_NUMBER'
    ? 'it speaks plain HTTP; use http:// instead of https://'
    : messageOf(error)

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
