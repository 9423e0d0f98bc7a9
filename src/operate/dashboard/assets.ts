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
