// The files of the dashboard: the path of each, where it lies and its type. Only names, so that the listener
// knows its paths before it loads what reads the files.

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

const own = [
  'dashboard.css',
  'main.js',
  'attention.js',
  'cell-drawer.js',
  'cell-table.js',
  'charts.js',
  'dom.js',
  'event-stream.js',
  'history.js',
  'labels.js',
  'listener.js',
  'lists.js',
  'live.js',
  'map.js',
  'outline.js',
  'panels.js',
  'place-search.js',
  'purge-question.js',
  'texts.js',
]

// Of src/page: at this address `../../../page/` of a module leads there too.
const shared = ['theme.css', 'icon.svg', 'figures.js', 'preferences.js']

export const assets: readonly Asset[] = [
  asset('/', './page/index.html'),
  ...own.map(name => asset(`/dashboard/${name}`, `./page/${name}`)),
  ...shared.map(name => asset(`/page/${name}`, `../../page/${name}`)),
  asset('/dashboard/uplot.js', 'uplot/dist/uPlot.esm.js'),
  asset('/dashboard/uplot.css', 'uplot/dist/uPlot.min.css'),
]
