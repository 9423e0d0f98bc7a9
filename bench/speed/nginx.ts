// nginx with Lua and Redis, with the gateway's guarantees: one EVALSHA per request looks up the hash of the key and takes
// one unit of its day exactly; the body comes from a cache in memory, plain or as gzip, with the same headers, or a 304 in
// its place. One worker, with its access log and without. Also nginx with its own cache and nothing else, as the ceiling.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { Scope } from '../../test/scenarios/set-up.ts'
import '../../test/support/program-path.ts'
import { freePort } from '../../test/support/redis-server.ts'
import { until } from '../../test/support/until.ts'
import { sum } from '../row.ts'
import {
  type Absent,
  type Answer,
  type CertificateFiles,
  type Contender,
  expectBody,
  get,
  limit,
  path,
  type World,
  withoutRedis,
} from './contender.ts'
import { endOf, serverCores, spawnPinned } from './pinned.ts'

const modules = ['ndk_http_module', 'ngx_http_lua_module'].map(name => `/usr/lib/nginx/modules/${name}.so`)

const versionText = spawnSync('nginx', ['-v']).stderr?.toString() ?? ''
export const nginxVersion = /nginx\/(\S+)/.exec(versionText)?.[1]

const whyAbsent = (): string | undefined => {
  if (nginxVersion === undefined)
    return 'nginx is not installed (Debian and Ubuntu: nginx libnginx-mod-http-lua)'
  const missing = modules.find(file => !existsSync(file))
  return missing && `nginx has no Lua, ${missing} is missing (Debian and Ubuntu: libnginx-mod-http-lua)`
}

// Key and count in one step, by the server's clock. Dhaka has a fixed UTC offset.
const takeUnit = `
local limit = redis.call('HGET', KEYS[1], 'limit')
if not limit then return { 0, 0, 0 } end
local day = math.floor((tonumber(redis.call('TIME')[1]) + 21600) / 86400)
local ends = (day + 1) * 86400 - 21600
local name = KEYS[1] .. ':' .. day
local used = redis.call('INCR', name)
if used == 1 then redis.call('EXPIREAT', name, ends + 86400) end
return { tonumber(limit), used, ends }`

const luaOf = (redisPort: string, sha: string): string => `
local ffi = require "ffi"
ffi.cdef "unsigned char *SHA256(const unsigned char *d, size_t n, unsigned char *md);"
local digest = ffi.new("unsigned char[32]")
-- By URL, in the worker's own memory, which measured faster than a shared dictionary and nginx's cache on disk.
local plain, zipped = {}, {}
local passed = { "content-type", "content-language", "content-encoding", "etag", "last-modified", "cache-control",
  "cache-status", "vary" }
local command = "*4\\r\\n$7\\r\\nEVALSHA\\r\\n$40\\r\\n${sha}\\r\\n$1\\r\\n1\\r\\n$36\\r\\nkey:"

local function take(hash)
  local redis = ngx.socket.tcp()
  if not redis:connect("127.0.0.1", ${redisPort}, { pool_size = 256 }) then return end
  redis:send(command .. hash .. "\\r\\n")
  if redis:receive() ~= "*3" then return end
  local limit, used, ends = redis:receive(), redis:receive(), redis:receive()
  redis:setkeepalive(60000, 256)
  return tonumber(limit:sub(2)), tonumber(used:sub(2)), ends:sub(2)
end

local function answer()
  local key = ngx.var.http_x_api_key
  if not key then return ngx.exit(401) end
  ffi.C.SHA256(key, #key, digest)
  local limit, used, ends = take(ffi.string(digest, 32))
  if not limit then return ngx.exit(500) end
  if limit == 0 then return ngx.exit(401) end
  local headers = ngx.header
  local remaining = math.max(0, limit - used)
  headers["x-ratelimit-limit"] = limit
  headers["x-ratelimit-remaining"] = remaining
  headers["x-ratelimit-reset"] = ends
  headers["ratelimit-policy"] = '"daily";q=' .. limit .. ';w=86400'
  headers["ratelimit"] = '"daily";r=' .. remaining .. ';t=' .. math.ceil(ends - ngx.now())
  headers["x-request-id"] = ngx.var.request_id
  if used > limit then return ngx.exit(429) end
  local uri = ngx.var.request_uri
  local accepts = ngx.var.http_accept_encoding
  local takes_gzip = accepts and accepts:find("gzip", 1, true)
  local weather = takes_gzip and zipped or plain
  local held = weather[uri]
  if not held or held.ends < ngx.now() then
    local fetched = ngx.location.capture((takes_gzip and "/origin-gzip" or "/origin") .. uri)
    if fetched.status ~= 200 then return ngx.exit(502) end
    local given = {}
    for name, value in pairs(fetched.header) do given[name:lower()] = value end
    local fresh_for = tonumber((given["cache-control"] or ""):match("max%-age=(%d+)")) or 0
    held = { body = fetched.body, headers = {}, etag = given.etag, ends = ngx.now() + fresh_for }
    for i = 1, #passed do held.headers[i] = given[passed[i]] end
    weather[uri] = held
  end
  local is_known = held.etag and ngx.var.http_if_none_match == held.etag
  for i = 1, #passed do
    if not (is_known and passed[i] == "content-encoding") then headers[passed[i]] = held.headers[i] end
  end
  if is_known then
    ngx.status = 304
    ngx.send_headers()
    return
  end
  headers["content-length"] = #held.body
  ngx.print(held.body)
end
return answer
`

type Ports = { readonly metered: number; readonly logged: number; readonly open: number }

const configOf = (folder: string, ports: Ports, { url, key }: Origin, tls?: CertificateFiles): string => `
${modules.map(file => `load_module ${file};`).join('\n')}
${process.getuid?.() === 0 ? '# Else the worker would be somebody who may not read this folder.\nuser root;' : ''}
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log error;
events { worker_connections 1024; }
http {
  access_log off;
  log_format one '$remote_addr [$time_iso8601] $request_method $request_uri $status $body_bytes_sent $request_time $request_id';
  keepalive_requests 1000000000;
  ${tls ? `ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key}; ssl_protocols TLSv1.3;` : ''}
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  lua_package_path "${folder}/?.lua;;";
  proxy_cache_path ${folder}/cache keys_zone=open:8m;
  ${[
    [ports.metered, ''],
    [ports.logged, `access_log ${logOf(folder)} one buffer=64k flush=1s;`],
  ]
    .map(
      ([port, log]) => `server {
    listen 127.0.0.1:${port}${tls ? ' ssl' : ''};
    ${log}
    location / { content_by_lua_block { require("answer")() } }
    location /origin/ { internal; proxy_set_header x-api-key "${key}"; proxy_set_header if-none-match ""; proxy_set_header accept-encoding ""; proxy_pass ${url}/; }
    location /origin-gzip/ { internal; proxy_set_header x-api-key "${key}"; proxy_set_header if-none-match ""; proxy_set_header accept-encoding gzip; proxy_pass ${url}/; }
  }`,
    )
    .join('\n  ')}
  server {
    listen 127.0.0.1:${ports.open};
    location / {
      proxy_pass ${url};
      proxy_cache open;
      proxy_cache_valid 200 1h;
      proxy_ignore_headers cache-control;
    }
  }
}
`

const logOf = (folder: string): string => join(folder, 'access.log')

/** Where weather comes from; without a key where none is wanted. */
type Origin = { readonly url: string; readonly key: string }

export type Nginx = {
  pid(): number
  restart(): Promise<void>
  /** Base addresses: at the gateway's guarantees, the same with the access log, and with nginx's cache alone. */
  readonly metered: string
  readonly logged: string
  readonly open: string
  /** File of the access log; nginx keeps its lines for up to a second. */
  readonly log: string
  /** The units counted for all keys. */
  counted(): Promise<number>
  /** @throws Error unless the response has all headers of the gateway's */
  expectHeaders(answer: Answer): void
}

type NginxOptions = {
  readonly keys: readonly string[]
  readonly origin: Origin
  /** Of its folder. */
  readonly name: string
  /** With it, all but its cache alone is served over TLS. */
  readonly tls?: CertificateFiles
}

/** Starts one nginx that knows these keys. @returns why it can't be measured here, where it can't */
export const openNginx = async (
  scope: Scope,
  world: World,
  { keys, origin, name, tls }: NginxOptions,
): Promise<Nginx | string> => {
  const absent = whyAbsent()
  const { redisUrl } = world
  if (redisUrl === undefined) return withoutRedis
  if (absent) return absent

  const redis = new Redis(redisUrl)
  scope.teardown(() => redis.quit())
  const names = keys.map(key =>
    Buffer.concat([Buffer.from('key:'), createHash('sha256').update(key).digest()]),
  )
  for (const one of names) await redis.hset(one, 'limit', String(limit))
  const sha = String(await redis.script('LOAD', takeUnit))

  const folder = join(world.folder, name)
  await mkdir(folder)
  const ports = { metered: await freePort(), logged: await freePort(), open: await freePort() }
  await writeFile(join(folder, 'answer.lua'), luaOf(new URL(redisUrl).port, sha))
  await writeFile(join(folder, 'nginx.conf'), configOf(folder, ports, origin, tls))
  const command: [string, ...string[]] = ['nginx', '-p', folder, '-c', join(folder, 'nginx.conf')]
  const urlOf = (port: number, scheme = 'http'): string => `${scheme}://127.0.0.1:${port}`
  const ofMetered = tls ? 'https' : 'http'
  const begin = async () => {
    const { child } = spawnPinned(scope, folder, serverCores[0], command)
    await until('nginx answers', () => get(urlOf(ports.open) + path).then(() => true), 10_000)
    return child
  }
  let child = await begin()
  const reference = await world.reference()
  const expected = Object.keys(reference.headers).filter(one => !['connection', 'keep-alive'].includes(one))
  return {
    pid: () => child.pid ?? 0,
    restart: async () => {
      await endOf(child)
      child = await begin()
    },
    metered: urlOf(ports.metered, ofMetered),
    logged: urlOf(ports.logged, ofMetered),
    open: urlOf(ports.open),
    log: logOf(folder),
    counted: async () => {
      // The day of the script, by the same clock.
      const [now] = await redis.time()
      const day = Math.floor((Number(now) + 21_600) / 86_400)
      return sum(
        (await redis.mget(names.map(one => Buffer.concat([one, Buffer.from(`:${day}`)])))).map(Number),
      )
    },
    expectHeaders: ({ headers }) => {
      const missing = expected.filter(one => headers[one] === undefined)
      if (missing.length > 0) throw new Error(`headers are missing: ${missing.join(', ')}`)
    },
  }
}

/** For the row of hits: one URL and one key, and its cache alone. */
export const startNginx = async (scope: Scope, world: World): Promise<(Contender | Absent)[]> => {
  const metered = { id: 'nginx', name: 'nginx + Lua + Redis at the same guarantees' }
  const open = { id: 'nginx-open', name: 'nginx with its cache alone: no key, no count (a ceiling)' }
  const key = 'nginx-key-of-the-bench'
  const origin = { url: world.originUrl, key: '' }
  const nginx = await openNginx(scope, world, { keys: [key], origin, name: 'nginx' })
  if (typeof nginx === 'string') return [metered, open].map(one => ({ ...one, absent: nginx }))
  return [
    {
      ...metered,
      // Its origin sends the same body for the whole run.
      ...meteredNginx(nginx, [key], async () => world.body),
    },
    {
      ...open,
      pid: nginx.pid,
      renew: nginx.restart,
      workload: async () => ({ url: nginx.open, paths: [path], keys: [] }),
      check: async () => expectBody(await get(nginx.open + path), world.body),
    },
  ]
}

/** With its keys in turn on one URL, without a log. @param expected the body that its origin sends now */
export const meteredNginx = (nginx: Nginx, keys: readonly string[], expected: () => Promise<Buffer>) => ({
  pid: nginx.pid,
  renew: nginx.restart,
  usesRedis: true,
  workload: async () => ({ url: nginx.metered, paths: [path], keys }),
  check: async () => {
    if ((await get(nginx.metered + path, { 'x-api-key': 'another' })).status !== 401)
      throw new Error('a key that is unknown was let in')
    const answer = await get(nginx.metered + path, { 'x-api-key': keys[0] ?? '' })
    expectBody(answer, await expected())
    nginx.expectHeaders(answer)
  },
  counters: async () => ({ counted: await nginx.counted() }),
})
