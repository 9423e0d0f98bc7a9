// Loaded before each test file (.taprc): leaves out what tap loads to follow modules and child processes for coverage, which
// is off. Without it the processes that tests start are Node as users start it, and every start costs less.

import { registerHooks } from 'node:module'

// Each child would load it through this, whatever environment a test gives.
delete process.env.NODE_OPTIONS

const hooks = registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier.includes('/@tapjs/processinfo/'))
      return { url: 'data:text/javascript,', shortCircuit: true }
    // What tap loads comes first, and from the test file on nothing is to be left out.
    hooks.deregister()
    return next(specifier, context)
  },
})
