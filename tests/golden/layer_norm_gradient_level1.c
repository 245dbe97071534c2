// r_64: in0 tmp0
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

static inline float across_add_f32x8_8(f32x8 x) {
  float y0 = (x[0]+x[4]);
  float y1 = (x[1]+x[5]);
  float y2 = (x[2]+x[6]);
  float y3 = (x[3]+x[7]);
  float y4 = (y0+y2);
  float y5 = (y1+y3);
  float y6 = (y4+y5);
  return y6;
}

void r_64(float* restrict data0, float* restrict data1) {
  for (int ridx0 = 0; ridx0 < 64; ridx0++) {
    long alu1 = ((long)ridx0);
    f32x8 acc0;
    acc0 = (0.0f-(f32x8){});
    long alu2 = (alu1*96L);
    f32x8 acc1;
    acc1 = (0.0f-(f32x8){});
    f32x8 acc2;
    acc2 = (0.0f-(f32x8){});
    f32x8 acc3;
    acc3 = (0.0f-(f32x8){});
    #pragma GCC unroll 4
    for (int ridx2 = 0; ridx2 < 3; ridx2++) {
      f32x8 val3 = acc0;
      long alu4 = (((long)ridx2)*32L);
      f32x8 val5 = *(f32x8u*)(data0+(alu2+alu4));
      acc0 = (val3+val5);
      f32x8 val6 = acc1;
      f32x8 val7 = *(f32x8u*)(data0+(alu2+(alu4+8L)));
      acc1 = (val6+val7);
      f32x8 val8 = acc2;
      f32x8 val9 = *(f32x8u*)(data0+(alu2+(alu4+16L)));
      acc2 = (val8+val9);
      f32x8 val10 = acc3;
      f32x8 val11 = *(f32x8u*)(data0+(alu2+(alu4+24L)));
      acc3 = (val10+val11);
    }
    f32x8 val12 = acc0;
    f32x8 val13 = acc1;
    f32x8 val14 = acc2;
    f32x8 val15 = acc3;
    f32x8 alu16 = ((val12+val13)+(val14+val15));
    float alu17 = across_add_f32x8_8(alu16);
    data1[alu1] = alu17;
  }
}

// r_64: in0 tmp0 tmp1
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

static inline float across_add_f32x8_8(f32x8 x) {
  float y0 = (x[0]+x[4]);
  float y1 = (x[1]+x[5]);
  float y2 = (x[2]+x[6]);
  float y3 = (x[3]+x[7]);
  float y4 = (y0+y2);
  float y5 = (y1+y3);
  float y6 = (y4+y5);
  return y6;
}

void r_64(float* restrict data0, float* restrict data1, float* restrict data2) {
  for (int ridx0 = 0; ridx0 < 64; ridx0++) {
    long alu1 = ((long)ridx0);
    f32x8 acc0;
    acc0 = (0.0f-(f32x8){});
    long alu2 = (alu1*96L);
    float val3 = data1[alu1];
    float alu4 = ((val3*0.010416666666666666f)*-1.0f);
    f32x8 acc1;
    acc1 = (0.0f-(f32x8){});
    f32x8 acc2;
    acc2 = (0.0f-(f32x8){});
    f32x8 acc3;
    acc3 = (0.0f-(f32x8){});
    #pragma GCC unroll 4
    for (int ridx2 = 0; ridx2 < 3; ridx2++) {
      f32x8 val5 = acc0;
      long alu6 = (((long)ridx2)*32L);
      f32x8 val7 = *(f32x8u*)(data0+(alu2+alu6));
      f32x8 alu8 = (val7+alu4);
      acc0 = (val5+(alu8*alu8));
      f32x8 val9 = acc1;
      f32x8 val10 = *(f32x8u*)(data0+(alu2+(alu6+8L)));
      f32x8 alu11 = (val10+alu4);
      acc1 = (val9+(alu11*alu11));
      f32x8 val12 = acc2;
      f32x8 val13 = *(f32x8u*)(data0+(alu2+(alu6+16L)));
      f32x8 alu14 = (val13+alu4);
      acc2 = (val12+(alu14*alu14));
      f32x8 val15 = acc3;
      f32x8 val16 = *(f32x8u*)(data0+(alu2+(alu6+24L)));
      f32x8 alu17 = (val16+alu4);
      acc3 = (val15+(alu17*alu17));
    }
    f32x8 val18 = acc0;
    f32x8 val19 = acc1;
    f32x8 val20 = acc2;
    f32x8 val21 = acc3;
    f32x8 alu22 = ((val18+val19)+(val20+val21));
    float alu23 = across_add_f32x8_8(alu22);
    data2[alu1] = alu23;
  }
}

// e_64_96: in0 tmp0 tmp1 in1 in2 out0
#include <math.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

void e_64_96(float* restrict data0, float* restrict data1, float* restrict data2, float* restrict data3, float* restrict data4, float* restrict data5) {
  for (int ridx0 = 0; ridx0 < 64; ridx0++) {
    long alu1 = ((long)ridx0);
    long alu2 = (alu1*96L);
    float val3 = data1[alu1];
    float alu4 = ((val3*0.010416666666666666f)*-1.0f);
    float val5 = data2[alu1];
    float alu6 = (1.0f/sqrtf(((val5*0.010416666666666666f)+1e-05f)));
    for (int ridx3 = 0; ridx3 < 3; ridx3++) {
      long alu7 = (((long)ridx3)*32L);
      long alu8 = (alu2+alu7);
      f32x8 val9 = *(f32x8u*)(data0+alu8);
      f32x8 val10 = *(f32x8u*)(data3+alu7);
      f32x8 val11 = *(f32x8u*)(data4+alu7);
      *(f32x8u*)(data5+alu8) = ((((val9+alu4)*alu6)*val10)+(val11+1.0f));
      long alu12 = (alu7+8L);
      long alu13 = (alu2+alu12);
      f32x8 val14 = *(f32x8u*)(data0+alu13);
      f32x8 val15 = *(f32x8u*)(data3+alu12);
      f32x8 val16 = *(f32x8u*)(data4+alu12);
      *(f32x8u*)(data5+alu13) = ((((val14+alu4)*alu6)*val15)+(val16+1.0f));
      long alu17 = (alu7+16L);
      long alu18 = (alu2+alu17);
      f32x8 val19 = *(f32x8u*)(data0+alu18);
      f32x8 val20 = *(f32x8u*)(data3+alu17);
      f32x8 val21 = *(f32x8u*)(data4+alu17);
      *(f32x8u*)(data5+alu18) = ((((val19+alu4)*alu6)*val20)+(val21+1.0f));
      long alu22 = (alu7+24L);
      long alu23 = (alu2+alu22);
      f32x8 val24 = *(f32x8u*)(data0+alu23);
      f32x8 val25 = *(f32x8u*)(data3+alu22);
      f32x8 val26 = *(f32x8u*)(data4+alu22);
      *(f32x8u*)(data5+alu23) = ((((val24+alu4)*alu6)*val25)+(val26+1.0f));
    }
  }
}

// r_64: in3 in1 in0 tmp0 tmp2
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

static inline float across_add_f32x8_8(f32x8 x) {
  float y0 = (x[0]+x[4]);
  float y1 = (x[1]+x[5]);
  float y2 = (x[2]+x[6]);
  float y3 = (x[3]+x[7]);
  float y4 = (y0+y2);
  float y5 = (y1+y3);
  float y6 = (y4+y5);
  return y6;
}

void r_64(float* restrict data0, float* restrict data1, float* restrict data2, float* restrict data3, float* restrict data4) {
  for (int ridx0 = 0; ridx0 < 64; ridx0++) {
    long alu1 = ((long)ridx0);
    f32x8 acc0;
    acc0 = (0.0f-(f32x8){});
    long alu2 = (alu1*96L);
    float val3 = data3[alu1];
    float alu4 = ((val3*0.010416666666666666f)*-1.0f);
    f32x8 acc1;
    acc1 = (0.0f-(f32x8){});
    f32x8 acc2;
    acc2 = (0.0f-(f32x8){});
    f32x8 acc3;
    acc3 = (0.0f-(f32x8){});
    #pragma GCC unroll 4
    for (int ridx2 = 0; ridx2 < 3; ridx2++) {
      f32x8 val5 = acc0;
      long alu6 = (((long)ridx2)*32L);
      long alu7 = (alu2+alu6);
      f32x8 val8 = *(f32x8u*)(data0+alu7);
      f32x8 val9 = *(f32x8u*)(data1+alu6);
      f32x8 val10 = *(f32x8u*)(data2+alu7);
      acc0 = (val5+((val8*val9)*(val10+alu4)));
      f32x8 val11 = acc1;
      long alu12 = (alu6+8L);
      long alu13 = (alu2+alu12);
      f32x8 val14 = *(f32x8u*)(data0+alu13);
      f32x8 val15 = *(f32x8u*)(data1+alu12);
      f32x8 val16 = *(f32x8u*)(data2+alu13);
      acc1 = (val11+((val14*val15)*(val16+alu4)));
      f32x8 val17 = acc2;
      long alu18 = (alu6+16L);
      long alu19 = (alu2+alu18);
      f32x8 val20 = *(f32x8u*)(data0+alu19);
      f32x8 val21 = *(f32x8u*)(data1+alu18);
      f32x8 val22 = *(f32x8u*)(data2+alu19);
      acc2 = (val17+((val20*val21)*(val22+alu4)));
      f32x8 val23 = acc3;
      long alu24 = (alu6+24L);
      long alu25 = (alu2+alu24);
      f32x8 val26 = *(f32x8u*)(data0+alu25);
      f32x8 val27 = *(f32x8u*)(data1+alu24);
      f32x8 val28 = *(f32x8u*)(data2+alu25);
      acc3 = (val23+((val26*val27)*(val28+alu4)));
    }
    f32x8 val29 = acc0;
    f32x8 val30 = acc1;
    f32x8 val31 = acc2;
    f32x8 val32 = acc3;
    f32x8 alu33 = ((val29+val30)+(val31+val32));
    float alu34 = across_add_f32x8_8(alu33);
    data4[alu1] = alu34;
  }
}

// r_64: in3 in1 tmp1 tmp2 in0 tmp0 tmp3
#include <math.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

static inline float across_add_f32x8_8(f32x8 x) {
  float y0 = (x[0]+x[4]);
  float y1 = (x[1]+x[5]);
  float y2 = (x[2]+x[6]);
  float y3 = (x[3]+x[7]);
  float y4 = (y0+y2);
  float y5 = (y1+y3);
  float y6 = (y4+y5);
  return y6;
}

enum {r_64_steps = 64};
void r_64(float* restrict data0, float* restrict data1, float* restrict data2, float* restrict data3, float* restrict data4, float* restrict data5, float* restrict data6, long first, long last) {
  for (int ridx7 = first; ridx7 < last; ridx7++) {
    long alu1 = ((long)ridx7);
    f32x8 acc0;
    acc0 = (0.0f-(f32x8){});
    long alu2 = (alu1*96L);
    float val3 = data2[alu1];
    float alu4 = sqrtf(((val3*0.010416666666666666f)+1e-05f));
    float alu5 = (1.0f/alu4);
    float val6 = data3[alu1];
    float alu7 = ((val6==0.0f)?val6:(((val6*alu5)*alu5)*-1.0f));
    float alu8 = ((((alu7==0.0f)|(alu4==0.0f))?0.0f:((alu7*0.5f)/alu4))*0.010416666666666666f);
    float val9 = data5[alu1];
    float alu10 = ((val9*0.010416666666666666f)*-1.0f);
    f32x8 acc1;
    acc1 = (0.0f-(f32x8){});
    for (int ridx2 = 0; ridx2 < 6; ridx2++) {
      f32x8 val11 = acc0;
      long alu12 = (((long)ridx2)*16L);
      long alu13 = (alu2+alu12);
      f32x8 val14 = *(f32x8u*)(data0+alu13);
      f32x8 val15 = *(f32x8u*)(data1+alu12);
      f32x8 val16 = *(f32x8u*)(data4+alu13);
      f32x8 alu17 = (alu8*(val16+alu10));
      acc0 = (val11+((((val14*val15)*alu5)+alu17)+alu17));
      f32x8 val18 = acc1;
      long alu19 = (alu12+8L);
      long alu20 = (alu2+alu19);
      f32x8 val21 = *(f32x8u*)(data0+alu20);
      f32x8 val22 = *(f32x8u*)(data1+alu19);
      f32x8 val23 = *(f32x8u*)(data4+alu20);
      f32x8 alu24 = (alu8*(val23+alu10));
      acc1 = (val18+((((val21*val22)*alu5)+alu24)+alu24));
    }
    f32x8 val25 = acc0;
    f32x8 val26 = acc1;
    f32x8 alu27 = (val25+val26);
    float alu28 = across_add_f32x8_8(alu27);
    data6[alu1] = alu28;
  }
}

// e_64_96: in3 in1 tmp1 tmp2 in0 tmp0 tmp3 out1
#include <math.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

enum {e_64_96_steps = 64};
void e_64_96(float* restrict data0, float* restrict data1, float* restrict data2, float* restrict data3, float* restrict data4, float* restrict data5, float* restrict data6, float* restrict data7, long first, long last) {
  for (int ridx8 = first; ridx8 < last; ridx8++) {
    long alu1 = ((long)ridx8);
    long alu2 = (alu1*96L);
    float val3 = data2[alu1];
    float alu4 = ((val3*0.010416666666666666f)+1e-05f);
    float alu5 = sqrtf(alu4);
    float alu6 = (1.0f/alu5);
    float val7 = data3[alu1];
    float alu8 = (((val7*alu6)*alu6)*-1.0f);
    float alu9 = ((val7==0.0f)?val7:alu8);
    float alu10 = ((alu9*0.5f)/alu5);
    float alu11 = (((alu9==0.0f)|(alu5==0.0f))?0.0f:alu10);
    float alu12 = (alu11*0.010416666666666666f);
    float val13 = data5[alu1];
    float alu14 = ((val13*0.010416666666666666f)*-1.0f);
    float val15 = data6[alu1];
    float alu16 = ((val15*-1.0f)*0.010416666666666666f);
    for (int ridx3 = 0; ridx3 < 3; ridx3++) {
      long alu17 = (((long)ridx3)*32L);
      f32x8 val18 = *(f32x8u*)(data1+alu17);
      long alu19 = (alu17+8L);
      long alu20 = (alu17+16L);
      long alu21 = (alu17+24L);
      long alu22 = (alu2+alu17);
      long alu23 = (alu2+alu19);
      f32x8 val24 = *(f32x8u*)(data1+alu19);
      long alu25 = (alu2+alu20);
      f32x8 val26 = *(f32x8u*)(data1+alu20);
      long alu27 = (alu2+alu21);
      f32x8 val28 = *(f32x8u*)(data1+alu21);
      f32x8 val29 = *(f32x8u*)(data0+alu22);
      f32x8 val30 = *(f32x8u*)(data4+alu22);
      f32x8 val31 = *(f32x8u*)(data0+alu23);
      f32x8 val32 = *(f32x8u*)(data4+alu23);
      f32x8 val33 = *(f32x8u*)(data0+alu25);
      f32x8 val34 = *(f32x8u*)(data4+alu25);
      f32x8 val35 = *(f32x8u*)(data0+alu27);
      f32x8 val36 = *(f32x8u*)(data4+alu27);
      f32x8 alu37 = (alu12*(val30+alu14));
      f32x8 alu38 = (alu12*(val32+alu14));
      f32x8 alu39 = (alu12*(val34+alu14));
      f32x8 alu40 = (alu12*(val36+alu14));
      f32x8 alu41 = (((val29*val18)*alu6)+alu37);
      f32x8 alu42 = (((val31*val24)*alu6)+alu38);
      f32x8 alu43 = (((val33*val26)*alu6)+alu39);
      f32x8 alu44 = (((val35*val28)*alu6)+alu40);
      *(f32x8u*)(data7+alu22) = ((alu41+alu37)+alu16);
      *(f32x8u*)(data7+alu23) = ((alu42+alu38)+alu16);
      *(f32x8u*)(data7+alu25) = ((alu43+alu39)+alu16);
      *(f32x8u*)(data7+alu27) = ((alu44+alu40)+alu16);
    }
  }
}

// r_96: in3 in0 tmp0 tmp1 out2
#include <math.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef double f64x8 __attribute__((vector_size(64)));

void r_96(float* restrict data0, float* restrict data1, float* restrict data2, float* restrict data3, float* restrict data4) {
  for (int ridx2 = 0; ridx2 < 3; ridx2++) {
    long alu1 = (((long)ridx2)*32L);
    f64x8 acc4;
    acc4 = (0.0-(f64x8){});
    long alu2 = (alu1+8L);
    long alu3 = (alu1+16L);
    long alu4 = (alu1+24L);
    f64x8 acc5;
    acc5 = (0.0-(f64x8){});
    f64x8 acc6;
    acc6 = (0.0-(f64x8){});
    f64x8 acc7;
    acc7 = (0.0-(f64x8){});
    for (int ridx7 = 0; ridx7 < 2; ridx7++) {
      f64x8 val5 = acc4;
      f32x8 acc0;
      acc0 = (0.0f-(f32x8){});
      f32x8 acc1;
      acc1 = (0.0f-(f32x8){});
      f32x8 acc2;
      acc2 = (0.0f-(f32x8){});
      f32x8 acc3;
      acc3 = (0.0f-(f32x8){});
      #pragma GCC unroll 4
      for (int ridx8 = 0; ridx8 < 32; ridx8++) {
        f32x8 val6 = acc0;
        long alu7 = ((((long)ridx7)*32L)+((long)ridx8));
        long alu8 = (alu7*96L);
        long alu9 = (alu8+alu1);
        f32x8 val10 = *(f32x8u*)(data0+alu9);
        f32x8 val11 = *(f32x8u*)(data1+alu9);
        float val12 = data2[alu7];
        float alu13 = ((val12*0.010416666666666666f)*-1.0f);
        float val14 = data3[alu7];
        float alu15 = (1.0f/sqrtf(((val14*0.010416666666666666f)+1e-05f)));
        acc0 = (val6+(val10*((val11+alu13)*alu15)));
        f32x8 val16 = acc1;
        long alu17 = (alu8+alu2);
        f32x8 val18 = *(f32x8u*)(data0+alu17);
        f32x8 val19 = *(f32x8u*)(data1+alu17);
        acc1 = (val16+(val18*((val19+alu13)*alu15)));
        f32x8 val20 = acc2;
        long alu21 = (alu8+alu3);
        f32x8 val22 = *(f32x8u*)(data0+alu21);
        f32x8 val23 = *(f32x8u*)(data1+alu21);
        acc2 = (val20+(val22*((val23+alu13)*alu15)));
        f32x8 val24 = acc3;
        long alu25 = (alu8+alu4);
        f32x8 val26 = *(f32x8u*)(data0+alu25);
        f32x8 val27 = *(f32x8u*)(data1+alu25);
        acc3 = (val24+(val26*((val27+alu13)*alu15)));
      }
      f32x8 val28 = acc0;
      acc4 = (val5+__builtin_convertvector(val28, f64x8));
      f64x8 val29 = acc5;
      f32x8 val30 = acc1;
      acc5 = (val29+__builtin_convertvector(val30, f64x8));
      f64x8 val31 = acc6;
      f32x8 val32 = acc2;
      acc6 = (val31+__builtin_convertvector(val32, f64x8));
      f64x8 val33 = acc7;
      f32x8 val34 = acc3;
      acc7 = (val33+__builtin_convertvector(val34, f64x8));
    }
    f64x8 val35 = acc4;
    *(f32x8u*)(data4+alu1) = __builtin_convertvector(val35, f32x8);
    f64x8 val36 = acc5;
    *(f32x8u*)(data4+alu2) = __builtin_convertvector(val36, f32x8);
    f64x8 val37 = acc6;
    *(f32x8u*)(data4+alu3) = __builtin_convertvector(val37, f32x8);
    f64x8 val38 = acc7;
    *(f32x8u*)(data4+alu4) = __builtin_convertvector(val38, f32x8);
  }
}

// r_96: in3 out3
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef double f64x8 __attribute__((vector_size(64)));

void r_96(float* restrict data0, float* restrict data1) {
  for (int ridx2 = 0; ridx2 < 3; ridx2++) {
    long alu1 = (((long)ridx2)*32L);
    f64x8 acc4;
    acc4 = (0.0-(f64x8){});
    long alu2 = (alu1+8L);
    long alu3 = (alu1+16L);
    long alu4 = (alu1+24L);
    f64x8 acc5;
    acc5 = (0.0-(f64x8){});
    f64x8 acc6;
    acc6 = (0.0-(f64x8){});
    f64x8 acc7;
    acc7 = (0.0-(f64x8){});
    for (int ridx7 = 0; ridx7 < 2; ridx7++) {
      f64x8 val5 = acc4;
      f32x8 acc0;
      acc0 = (0.0f-(f32x8){});
      f32x8 acc1;
      acc1 = (0.0f-(f32x8){});
      f32x8 acc2;
      acc2 = (0.0f-(f32x8){});
      f32x8 acc3;
      acc3 = (0.0f-(f32x8){});
      #pragma GCC unroll 4
      for (int ridx8 = 0; ridx8 < 32; ridx8++) {
        f32x8 val6 = acc0;
        long alu7 = (((((long)ridx7)*32L)+((long)ridx8))*96L);
        f32x8 val8 = *(f32x8u*)(data0+(alu7+alu1));
        acc0 = (val6+val8);
        f32x8 val9 = acc1;
        f32x8 val10 = *(f32x8u*)(data0+(alu7+alu2));
        acc1 = (val9+val10);
        f32x8 val11 = acc2;
        f32x8 val12 = *(f32x8u*)(data0+(alu7+alu3));
        acc2 = (val11+val12);
        f32x8 val13 = acc3;
        f32x8 val14 = *(f32x8u*)(data0+(alu7+alu4));
        acc3 = (val13+val14);
      }
      f32x8 val15 = acc0;
      acc4 = (val5+__builtin_convertvector(val15, f64x8));
      f64x8 val16 = acc5;
      f32x8 val17 = acc1;
      acc5 = (val16+__builtin_convertvector(val17, f64x8));
      f64x8 val18 = acc6;
      f32x8 val19 = acc2;
      acc6 = (val18+__builtin_convertvector(val19, f64x8));
      f64x8 val20 = acc7;
      f32x8 val21 = acc3;
      acc7 = (val20+__builtin_convertvector(val21, f64x8));
    }
    f64x8 val22 = acc4;
    *(f32x8u*)(data1+alu1) = __builtin_convertvector(val22, f32x8);
    f64x8 val23 = acc5;
    *(f32x8u*)(data1+alu2) = __builtin_convertvector(val23, f32x8);
    f64x8 val24 = acc6;
    *(f32x8u*)(data1+alu3) = __builtin_convertvector(val24, f32x8);
    f64x8 val25 = acc7;
    *(f32x8u*)(data1+alu4) = __builtin_convertvector(val25, f32x8);
  }
}
