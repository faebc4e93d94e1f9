// Browsers start no worker for a page that was opened as a file, and the search runs in one.
// There, its script runs in a hidden frame instead. On pages from a server this changes nothing.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.loaded = new Promise(resolve => {
        const frame = document.createElement("iframe")
        frame.hidden = true
        frame.srcdoc = "<!doctype html>"
        frame.onload = () => this.start(frame.contentWindow, url, resolve)
        document.documentElement.append(frame)
      })
    }

    start(scope, url, resolve) {
      scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = scope.document.createElement("script")
      script.src = url
      script.onload = () => resolve(scope)
      scope.document.head.append(script)
    }

    postMessage(data) {
      this.loaded.then(scope => scope.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
