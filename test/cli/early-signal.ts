// Preloaded into a process of the product: sends it the signals of EARLY_SIGNALS while it loads its code, right before the commands.

import { registerHooks } from 'node:module'

registerHooks({
  load: (url, context, next) => {
    if (url.endsWith('/src/cli/program.ts')) {
      const signals = process.env.EARLY_SIGNALS?.split(' ') ?? []
      // The processes that it starts are not meant.
      delete process.env.EARLY_SIGNALS
      for (const signal of signals) process.kill(process.pid, signal)
    }
    return next(url, context)
  },
})
