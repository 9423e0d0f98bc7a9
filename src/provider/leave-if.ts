// A last look at a request to the provider before it leaves: between the grant of its weight and the write to its connection
// a process may stand still for hours. Apart, because the pass-through has connections of its own; who judges is the caller.

import type { Dispatcher } from 'undici'

/**
 * An interceptor that asks `mayLeave` when there is a connection, in the same turn of the event loop that writes the
 * request to it, and otherwise fails the request with the error of `refused`; nothing is sent then.
 */
export const leaveIf =
  (mayLeave: () => boolean, refused: () => Error): Dispatcher.DispatcherComposeInterceptor =>
  dispatch =>
  (options, handler) =>
    dispatch(options, {
      onRequestStart: (controller, context) => {
        if (mayLeave()) handler.onRequestStart?.(controller, context)
        else controller.abort(refused())
      },
      onRequestUpgrade: (...given) => handler.onRequestUpgrade?.(...given),
      onResponseStart: (...given) => handler.onResponseStart?.(...given),
      onResponseData: (...given) => handler.onResponseData?.(...given),
      onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
      onResponseError: (...given) => handler.onResponseError?.(...given),
    })
