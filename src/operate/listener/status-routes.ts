// /status, /cells and /search, for the dashboard and the CLI.

import type { FastifyInstance } from 'fastify'
import { InputError } from '../../common/errors.ts'
import { quoted } from '../../common/outside-text.ts'
import type { CellSurvey } from '../cell-survey.ts'
import type { createStatus } from '../status.ts'
import { type Query, textIn, wholeIn } from './request-input.ts'

const longestQuery = 100
const maxFound = 50
const usuallyFound = 8

export const registerStatus = (
  app: FastifyInstance,
  { report, cells, search }: ReturnType<typeof createStatus> & CellSurvey,
): void => {
  app.get('/status', () => report())
  app.get('/cells', async () => cells())
  app.get<Query>('/search', async ({ query }) => {
    const q = textIn(query, 'q')
    if (q === undefined || q.trim() === '' || q.length > longestQuery)
      throw new InputError(
        `q must have 1 to ${longestQuery} characters of a name, got ${q === undefined ? 'none' : quoted(q)}`,
      )
    return search(q, wholeIn(query, 'limit', usuallyFound, 1, maxFound))
  })
}
