// How much work is done in one turn of the event loop, without a clock.

/** Counts the calls of `worked` between two turns while `act` runs. @returns the most in a turn, and all */
export const workPerTurn = async (
  act: (worked: () => void) => Promise<unknown>,
): Promise<{ most: number; all: number }> => {
  let [most, all, inTurn, isOver] = [0, 0, 0, false]
  const turn = (): void => {
    inTurn = 0
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  try {
    await act(() => {
      all += 1
      inTurn += 1
      most = Math.max(most, inTurn)
    })
  } finally {
    isOver = true
  }
  return { most, all }
}
