// Loaded before each test file (.taprc): leaves out what tap loads to follow modules and child processes for coverage, which
// is off, and gives it error-domain.ts. The processes that tests start are then Node as users start it, and every start and
// every promise costs less.

import { registerHooks } from 'node:module'
import '../support/programs.ts'

// Each child would load it through this, whatever environment a test gives.
delete process.env.NODE_OPTIONS

const leftOut = registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier.includes('/@tapjs/processinfo/'))
      return { url: 'data:text/javascript,', shortCircuit: true }
    // What tap loads comes first, and from the test file on nothing is to be left out.
    leftOut.deregister()
    return next(specifier, context)
  },
})

// What a test forks is started with the same arguments, and has no tap.
if (/\.test\.m?[jt]s$/.test(process.argv[1] ?? '')) {
  const errorDomain = new URL('./error-domain.ts', import.meta.url).href
  const replaced = registerHooks({
    load: (url, context, next) => {
      if (!url.includes('/node_modules/async-hook-domain/')) return next(url, context)
      replaced.deregister()
      return { format: 'module', source: `export { Domain } from '${errorDomain}'`, shortCircuit: true }
    },
  })
}
