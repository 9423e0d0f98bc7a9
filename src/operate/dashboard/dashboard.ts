// The files of the dashboard, each read at its first request and kept. They are public: its data need the token.

import { hash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'

type Asset = { readonly path: string; readonly file: string; readonly type: string }

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/** @param file beside this one, or of a package */
const asset = (path: string, file: string): Asset => ({
  path,
  file,
  type: types[path.slice(path.lastIndexOf('.') + 1)] ?? 'text/html; charset=utf-8',
})

// Types are for the type checker, and the page itself is at the root.
const own = readdirSync(new URL('../../../dashboard/page/', import.meta.url)).filter(name =>
  /\.(?:js|css)$/.test(name),
)

const ofAllPages = ['house.css', 'icon.svg']
// Of src/common/page.
const shared = ['figures.js', 'preferences.js']

// Their paths are those in the project, because modules import each other relative to them: so they are found under the path of a proxy too.
const assets: readonly Asset[] = [
  asset('/', '../../../dashboard/page/index.html'),
  ...own.map(name => asset(`/dashboard/page/${name}`, `../../../dashboard/page/${name}`)),
  ...ofAllPages.map(name => asset(`/dashboard/${name}`, `../../../dashboard/${name}`)),
  ...shared.map(name => asset(`/src/common/page/${name}`, `../../common/page/${name}`)),
  asset('/dashboard/page/preact.js', 'preact'),
  asset('/dashboard/page/htm.js', 'htm'),
  asset('/dashboard/page/uplot.js', 'uplot/dist/uPlot.esm.js'),
  asset('/dashboard/page/uplot.css', 'uplot/dist/uPlot.min.css'),
]

export type DashboardOptions = {
  readonly timeZone: string
}

// Nothing from elsewhere, nothing inline, nothing sent anywhere but back here; unlike all else here it may run scripts.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

type Kept = { readonly body: Buffer; readonly etag: string }

export const registerDashboard = (app: FastifyInstance, { timeZone }: DashboardOptions): void => {
  const load = async ({ file }: Asset): Promise<Kept> => {
    const at = file.startsWith('.') ? new URL(file, import.meta.url) : new URL(import.meta.resolve(file))
    const bytes = await readFile(fileURLToPath(at))
    const body = file.endsWith('.html')
      ? Buffer.from(bytes.toString().replace('data-time-zone=""', `data-time-zone="${timeZone}"`))
      : bytes
    return { body, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` }
  }
  for (const asset of assets) {
    let kept: Promise<Kept> | undefined
    app.get(asset.path, { config: { public: true } }, async (request, reply) => {
      // A file that can't be read may be there the next time.
      kept ??= load(asset).catch(error => {
        kept = undefined
        throw error
      })
      const { body, etag } = await kept
      reply.headers({
        'content-security-policy': policy,
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-cache',
        etag,
      })
      if (request.headers['if-none-match'] === etag) return reply.code(304).send()
      return reply.type(asset.type).send(body)
    })
  }
}
