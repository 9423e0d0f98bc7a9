// The YAML library, loaded on demand: a start with settings from the environment does not need its 70 files.

import { createRequire } from 'node:module'
import type { readYamlFile } from './yaml-file.ts'

const require = createRequire(import.meta.url)

/** The library. */
export const yamlLibrary = (): typeof import('yaml') => require('yaml')

/** What reads config files. */
export const yamlFiles = (): { readonly readYamlFile: typeof readYamlFile } => require('./yaml-file.ts')
