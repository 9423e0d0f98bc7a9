// So many connections that ask for one address as fast as they are answered, for some seconds: by wrk where it is
// installed, else by a small loader of our own, pinned to a core of their own.

import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hasCommand, pinned } from './pinned.ts'

export type Load = {
  readonly requests: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers with another status, and connections that broke. */
  readonly wrong: number
}

export type LoadOptions = {
  readonly url: string
  readonly keys: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly status: number
  readonly connections: number
  readonly seconds: number
  readonly folder: string
}

export const connections = 64
const run = promisify(execFile)
const loader = new URL('./loader.ts', import.meta.url).pathname

/** Which loader is used. */
export const loaderName = hasCommand('wrk') ? 'wrk' : 'the bench’s own loader (wrk is not installed)'

export const load = (options: LoadOptions): Promise<Load> =>
  loaderName === 'wrk' ? loadByWrk(options) : loadByOurs(options)

const loadByWrk = async (options: LoadOptions): Promise<Load> => {
  const { url, keys, headers, folder, seconds } = options
  const fixed = Object.entries({
    ...headers,
    ...(keys.length === 1 && keys[0] ? { 'x-api-key': keys[0] } : {}),
  })
  const script: string[] = []
  if (keys.length > 1) {
    const file = join(folder, 'keys.lua')
    writeFileSync(file, scriptOf(keys, fixed))
    script.push('-s', file)
  }
  const [program = '', ...args] = pinned(1, [
    'wrk',
    '-t1',
    `-c${options.connections}`,
    `-d${seconds}s`,
    '--latency',
    ...fixed.flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    ...script,
    url,
  ])
  const { stdout } = await run(program, args)
  return readWrk(stdout, seconds)
}

// Requests are put together before the clock runs.
const scriptOf = (keys: readonly string[], fixed: readonly (readonly [string, string])[]): string => `
local keys = { ${keys.map(key => `"${key}"`).join(', ')} }
local requests, at = {}, 0
init = function()
  for i, key in ipairs(keys) do
    local headers = { ${fixed.map(([name, value]) => `["${name}"] = '${value}'`).join(', ')} }
    headers["x-api-key"] = key
    requests[i] = wrk.format("GET", nil, headers)
  end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
`

/** What wrk prints. */
const readWrk = (text: string, seconds: number): Load => {
  const numberAfter = (pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0)
  const msAfter = (share: string): number => {
    const [, value, unit = 'ms'] = new RegExp(`${share}%\\s+([\\d.]+)(us|ms|s)`).exec(text) ?? []
    return Number(value) * ({ us: 0.001, ms: 1, s: 1000 }[unit] ?? 1)
  }
  const requests = numberAfter(/(\d+) requests in/)
  const broken =
    /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text)?.slice(1) ?? []
  return {
    requests,
    perSecond: numberAfter(/Requests\/sec:\s+([\d.]+)/) || requests / seconds,
    p50Ms: msAfter('50'),
    p99Ms: msAfter('99'),
    wrong:
      numberAfter(/Non-2xx or 3xx responses: (\d+)/) + broken.reduce((sum, count) => sum + Number(count), 0),
  }
}

const loadByOurs = async (options: LoadOptions): Promise<Load> => {
  const [program = '', ...args] = pinned(1, [process.execPath, loader, JSON.stringify(options)])
  const { stdout } = await run(program, args)
  return JSON.parse(stdout) as Load
}
