// What reads and writes YAML, loaded when there is some: with settings from the environment alone a start has none, and the
// library has 70 files.

import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** The library. */
export const yamlLibrary = (): typeof import('yaml') => require('yaml')

/** What reads config files. */
export const yamlFiles = (): typeof import('./yaml-file.ts') => require('./yaml-file.ts')
