# A precompiled package that depends on this one loads, also from its cache.
mktempdir() do folder
    project = joinpath(folder, "Dependent")
    mkpath(joinpath(project, "src"))
    uuid = "7f3c0d7e-40a9-4d5b-8f0e-0d0f6a3a7a11"
    write(joinpath(project, "Project.toml"), """
        name = "Dependent"
        uuid = "$uuid"
        version = "0.1.0"
        [deps]
        FirstTouch = "350acf7e-c78e-4dbf-9076-3979a8667754"
        """)
    write(joinpath(project, "src", "Dependent.jl"), """
        module Dependent
        using FirstTouch
        total(n) = sum(fill!(Vector{Int}(pool(), n), 1))
        end
        """)
    here = dirname(dirname(pathof(FirstTouch)))
    script = """
        using Pkg
        Pkg.develop([PackageSpec(path = p) for p in $(repr([joinpath(dirname(here), "firsttouch_jll"), here, project]))])
        """
    load = "using Dependent; print(Dependent.total(10))"
    run(script) = read(`$(Base.julia_cmd()) --startup-file=no --project=$folder -e $script`, String)
    withenv("JULIA_LOAD_PATH" => "@:@stdlib") do
        run(script)
        @test run(load) == "10" # precompiles
        @test run(load) == "10" # from the cache
    end
end
