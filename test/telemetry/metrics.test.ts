// Without it a gateway that was scraped at a bad moment could have no metrics until it is restarted.

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { withoutPrlimit } from '../support/process.ts'
import type { Scrapes } from './scrape-without-descriptors.ts'

t.test(
  'a scrape that finds no descriptor fails, and the next one does not',
  { skip: withoutPrlimit },
  async t => {
    const script = join(import.meta.dirname, 'scrape-without-descriptors.ts')
    const { stdout } = await promisify(execFile)('prlimit', ['--nofile=80', process.execPath, script])
    const [first, second]: Scrapes = JSON.parse(stdout)
    t.not(first, 'whole', first)
    t.equal(second, 'whole')
  },
)
