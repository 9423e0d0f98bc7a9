// The files of the dashboard: the path of each, where it lies and its type. Only names, so that the listener
// knows its paths before it loads what reads the files.

import { readdirSync } from 'node:fs'

export type Asset = { readonly path: string; readonly file: string; readonly type: string }

const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/** @param file beside this one, or of a package */
const asset = (path: string, file: string): Asset => ({
  path,
  file,
  type: types[file.slice(file.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
})

// Types are for the type checker, and the page itself is at the root.
const own = readdirSync(new URL('./page/', import.meta.url)).filter(name => /\.(?:js|css)$/.test(name))

// Of src/common/page.
const shared = ['theme.css', 'icon.svg', 'figures.js', 'preferences.js']

// Their paths are those in src/, because modules import each other relative to them: so they are found under the path of a proxy too.
export const assets: readonly Asset[] = [
  asset('/', './page/index.html'),
  ...own.map(name => asset(`/operate/dashboard/page/${name}`, `./page/${name}`)),
  ...shared.map(name => asset(`/common/page/${name}`, `../../common/page/${name}`)),
  asset('/operate/dashboard/page/uplot.js', 'uplot/dist/uPlot.esm.js'),
  asset('/operate/dashboard/page/uplot.css', 'uplot/dist/uPlot.min.css'),
]
