# interlock in a container: built from this tree in one stage, installed as a package in the next.
#   docker build -t interlock .
#   docker run --rm -v "$PWD:/runs" interlock simulate scenario.json --report report.html
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
      build-essential cmake dpkg-dev file ninja-build \
      libsimgrid-dev nlohmann-json3-dev libcli11-dev libcpp-httplib-dev libjs-codemirror pkg-config libeigen3-dev libsqlite3-dev libssl-dev libtomlplusplus-dev libyaml-cpp-dev libzip-dev zlib1g-dev \
      libopenmpi-dev libprotobuf-dev protobuf-compiler \
    && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DINTERLOCK_TESTS=OFF -DINTERLOCK_CUDA=OFF \
    && cmake --build /build && cd /build && cpack -G DEB -B /package

FROM debian:12
COPY --from=build /package/interlock_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/*.deb coinor-cbc librsvg2-bin \
    && rm -rf /var/lib/apt/lists/* /tmp/*.deb
WORKDIR /runs
ENTRYPOINT ["interlock"]
